"""``paramixer predict``, ``explain`` and ``report`` as a user meets them."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paramixer.cli import main
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.run import RunSettings, start_run

TRAINING = {"steps": 6, "batch": 4, "evaluate_every": 3}
MODEL = {"channels": 6, "hidden": 5, "blocks": 1}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with texts of many lengths, names and stars, and a run on them."""
    place = tmp_path_factory.mktemp("trained")
    with (place / "reviews.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "review", "stars"])
        for number in range(60):
            writer.writerow([f"r{number}", ("good " if number % 2 else "bad ") * (1 + number % 7), 1 + number % 2])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("PARAMIXER_CACHE", str(place / "cache"))
        data = {"text": "review", "label": "stars", "id": "name"}
        start_run(RunSettings(task="reviews.csv", data=data, model=MODEL, training=TRAINING), place / "run")
    return place


@pytest.fixture
def run(folder, trained) -> Path:
    """A copy of the run and its data in the current folder."""
    shutil.copytree(trained, folder, dirs_exist_ok=True)
    return folder / "run"


@pytest.mark.usefixtures("run")
def test_predictions_are_the_same_in_every_format():
    assert RunFolder(Path("run")).read_record()["model"]["padding"] == "length"
    for suffix in ("csv", "jsonl", "parquet"):
        assert main(["predict", "run", "reviews.csv", "--proba", "--out", f"out/answers.{suffix}"]) == 0
    with Path("out/answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [f"r{number}" for number in range(60)]
    assert list(rows[0]) == ["name", "prediction", "probability", "probability_1", "probability_2"]
    for row in rows:
        shares = {label: float(row[f"probability_{label}"]) for label in ("1", "2")}
        assert sum(shares.values()) == pytest.approx(1)
        assert row["prediction"] == max(shares, key=shares.__getitem__)
    lines = [json.loads(line) for line in Path("out/answers.jsonl").read_text().splitlines()]
    table = pq.read_table("out/answers.parquet").to_pylist()
    for row, line, cells in zip(rows, lines, table, strict=True):
        assert {key: str(value) for key, value in line.items()} == row
        assert cells == line


@pytest.mark.usefixtures("run")
def test_empty_inputs_keep_their_rows_and_are_listed(capsys):
    Path("new.csv").write_text("name,review\na,good\nb,\nc,bad\n")
    assert main(["predict", "run", "new.csv", "--out", "answers.csv"]) == 0
    with Path("answers.csv").open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["a", "b", "c"]
    assert "1 of 3 inputs is empty" in (shown := capsys.readouterr().out)
    assert "line 3" in shown


@pytest.mark.usefixtures("run")
def test_predictions_do_not_depend_on_the_batch_size():
    answers = []
    for batch in ("1", "7"):
        assert main(["predict", "run/model", "reviews.csv", "--batch", batch, "--out", "answers.jsonl"]) == 0
        answers.append([json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()])
    for one, other in zip(*answers, strict=True):
        assert one["probability"] == pytest.approx(other["probability"], abs=1e-5)
        assert one["name"] == other["name"]


@pytest.mark.slow
@pytest.mark.usefixtures("run")
def test_a_file_of_a_gigabyte_is_predicted_in_little_memory():
    with Path("large.csv").open("w") as file:
        file.write("name,review\n")
        for number in range(10_000):
            file.write(f"{number},{'good bad ' * 12_000}\n")
    assert Path("large.csv").stat().st_size > 1e9
    program = """
import resource, sys
from paramixer.cli import main
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
main(["predict", "run", "reviews.csv", "--out", "small.csv"])
before = peak()
main(["predict", "run", "large.csv", "--out", "large.out.csv"])
print("grew by", peak() - before, "MB")
"""
    output = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, check=True).stdout
    assert int(re.search(r"grew by (\d+) MB", output)[1]) < 200
    with Path("large.out.csv").open() as file:
        assert sum(1 for _ in file) == 10_001


def test_values_are_predicted_from_lists_of_numbers(folder):
    rows = [{"signal": [float(n), 1.0, 2.0], "value": n / 10} for n in range(40)]
    Path("signals.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = {"text": "signal", "label": "value"}
    start_run(RunSettings(task="signals.jsonl", data=data, model=MODEL, training=TRAINING), folder / "run")
    assert RunFolder(Path("run")).read_record()["metric"] == "mse"
    assert main(["predict", "run", "signals.jsonl", "--out", "answers.jsonl"]) == 0
    answers = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    assert [row["id"] for row in answers] == [str(n) for n in range(40)]
    assert all(isinstance(row["prediction"], float) for row in answers)


@pytest.mark.usefixtures("run")
def test_what_cannot_be_predicted_is_refused_in_one_line(capsys):
    Path("other.csv").write_text("words\nhello\n")
    Path("new.csv").write_text("name,review\na,abc\n")
    Path("empty.csv").write_text("name,review\n")
    for words, message in (
        ("nowhere new.csv", "there is no run folder nowhere"),
        ("run nowhere.csv", "nowhere.csv"),
        ("run reviews.csv --out answers.xlsx", ".csv, .jsonl, .parquet"),
        ("run other.csv", "review"),
        ("run empty.csv", "not a single row"),
        ("run new.csv --batch 0", "batch=0; it must be at least 1"),
        ("run new.csv --out ./new.csv", "which would be lost"),
        ("run new.csv --format csv", "--format csv is for standard input"),
        ("run new.csv --out .", "predictions are written to"),
    ):
        assert main(["predict", *words.split()]) == 2, words
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert not Path("predictions.csv").exists()
    assert Path("new.csv").read_text() == "name,review\na,abc\n"
    document = json.loads(Path("run/model/inputs.json").read_text())
    Path("run/model/inputs.json").write_text(json.dumps(document | {"format": 99}))
    assert main(["predict", "run", "new.csv"]) == 2
    assert "has format 99" in capsys.readouterr().err


@pytest.mark.usefixtures("run")
def test_explain_writes_a_picture_and_a_page(capsys):
    assert main(["explain", "run", "--index", "2", "--out", "deep/one.png"]) == 0
    assert "deep/one.html" in capsys.readouterr().out
    assert Path("deep/one.png").read_bytes().startswith(b"\x89PNG")
    assert "test 2: " in Path("deep/one.html").read_text(encoding="utf-8")
    words = "explain run/model --input reviews.csv --text review --index 4 --target 2 --position 3 --window 2 --out two"
    assert main(words.split()) == 0
    assert Path("two.html").is_file()
    Path("taken.html").mkdir()
    for flags, message in (
        ("--index 99", "index=99; test has"),
        ("--target 7", "'7'"),
        ("--input nowhere.csv", "nowhere.csv"),
        ("--out taken", "taken.html is a folder"),
    ):
        assert main(["explain", "run", *flags.split()]) == 2, flags
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert not Path("explanation.png").exists()
    assert not Path("taken.png").exists()


@pytest.mark.usefixtures("run")
def test_report_writes_one_page(capsys):
    assert main(["report", "run", "run", "--sequences", "9", "--batch", "4", "--out", "both.html"]) == 0
    assert "both.html" in capsys.readouterr().out
    assert "2 runs" in Path("both.html").read_text(encoding="utf-8")
    Path("a-file").write_text("")
    for words, message in (
        ("run --sequences 0", "sequences=0; it must be at least 1"),
        ("run --out a-file/page.html", "a-file is a file, not a folder"),
        ("run nowhere", "nowhere"),
    ):
        assert main(["report", *words.split()]) == 2, words
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert not Path("report.html").exists()


def feed(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.usefixtures("run")
def test_lines_of_standard_input_become_rows_of_standard_output_and_nothing_else(capsys, monkeypatch):
    feed(monkeypatch, b"good film\nbad\n")
    assert main(["predict", "run", "-"]) == 0
    out, error = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["id"] for row in rows] == ["0", "1"]
    assert list(rows[0]) == ["id", "prediction", "probability"]
    assert "symbols were unknown to the model, in 1 of 2 inputs" in error
    feed(monkeypatch, b'{"name": "one", "review": "good"}\n')
    assert main(["predict", "run", "-", "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "one"
    feed(monkeypatch, b"name,words\none,good\n")
    assert main(["predict", "run", "-", "--format", "csv"]) == 2
    assert "standard input" in capsys.readouterr().err


@pytest.mark.usefixtures("run")
def test_what_is_longer_than_the_model_is_cut_or_read_in_windows_and_either_is_reported(capsys):
    Path("new.csv").write_text(f"name,review\nlong,{'good ' * 50}\nshort,bad\n")
    assert main(["predict", "run", "new.csv", "--out", "cut.csv"]) == 0
    assert "1 of 2 inputs is longer than 36 and was cut; --windows reads them whole" in capsys.readouterr().out
    assert main(["predict", "run", "new.csv", "--windows", "--out", "whole.csv"]) == 0
    assert "1 of 2 inputs is longer than 36 and was read in windows" in capsys.readouterr().out
    cut, whole = (list(csv.DictReader(Path(name).read_text().splitlines())) for name in ("cut.csv", "whole.csv"))
    assert cut[0]["probability"] != whole[0]["probability"]
    assert cut[1] == whole[1]


@pytest.mark.usefixtures("run")
def test_no_cell_of_a_csv_is_a_formula_unless_it_is_asked_for():
    names = ["=1+1", "+a", "-a", "@a", "-5", "+1.5e3", "plain"]
    Path("new.csv").write_text("name,review\n" + "".join(f"{name},good\n" for name in names))
    assert main(["predict", "run", "new.csv", "--out", "safe.csv"]) == 0
    with Path("safe.csv").open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["'=1+1", "'+a", "'-a", "'@a", *names[4:]]
    assert main(["predict", "run", "new.csv", "--no-escape", "--out", "raw.csv"]) == 0
    with Path("raw.csv").open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == names


@pytest.mark.usefixtures("run")
def test_another_encoding_than_that_of_training_is_given_by_a_flag(capsys, monkeypatch):
    Path("latin.csv").write_bytes("review\ncaf\xe9\n".encode("latin-1"))
    assert main(["predict", "run", "latin.csv"]) == 2
    assert "--encoding latin-1" in capsys.readouterr().err
    assert main(["predict", "run", "latin.csv", "--encoding", "latin-1"]) == 0
    Path("utf.csv").write_text("review\ncaf\xe9\n", encoding="utf-8")
    latin = Path("predictions.csv").read_text()
    assert main(["predict", "run", "utf.csv"]) == 0
    assert Path("predictions.csv").read_text() == latin
    capsys.readouterr()
    for encoding, code in (("latin-1", 0), ("utf-8", 2), ("utf-16", 2)):
        feed(monkeypatch, "caf\xe9\n".encode("latin-1"))
        assert main(["predict", "run", "-", "--encoding", encoding]) == code
    assert capsys.readouterr().out.count("\n") == 2


@pytest.mark.usefixtures("run")
def test_texts_of_a_folder_are_named_by_their_path(capsys):
    for name in ("a/1.txt", "b/1.txt"):
        Path("folder", name).parent.mkdir(parents=True, exist_ok=True)
        Path("folder", name).write_text("abc")
    assert main(["predict", "run", "folder"]) == 0
    rows = Path("predictions.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["id", "a/1.txt", "b/1.txt"]


@pytest.mark.usefixtures("run")
def test_classes_that_are_not_the_model_s_are_refused(capsys):
    path = Path("run/model/inputs.json")
    document = json.loads(path.read_text())
    document["facts"]["classes"] = document["facts"]["classes"][:1]
    path.write_text(json.dumps(document))
    assert main(["predict", "run", "reviews.csv"]) == 2
    assert "inputs.json names 1 classes, the model beside it has 2; restore both" in capsys.readouterr().err
