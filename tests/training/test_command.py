"""``paramixer train``, ``evaluate`` and ``predict`` as a user meets them."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from paramixer.training.command import TrainOptions, hastened

import paramixer as pm
from paramixer.cli import main
from paramixer.training.run_folder import RunFolder

SMALL = ["--steps", "6", "--batch", "4", "--evaluate_every", "3"]
MODEL = ["--model.channels", "6", "--model.hidden", "5"]
STARS = ["reviews.csv", "--text", "review", "--label", "stars"]
ORDER = ["train", "order", "--length", "12", "--train", "40", "--validation", "9", "--test", "7", *SMALL, *MODEL]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def reviews(tmp_path) -> Path:
    """Texts of many lengths, with names and stars."""
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "review", "stars"])
        for number in range(60):
            writer.writerow([f"r{number}", ("good " if number % 2 else "bad ") * (1 + number % 7), 1 + number % 2])
    return path


def test_train_needs_nothing_but_a_task_and_says_what_it_chose(capsys):
    assert main(ORDER) == 0
    text = capsys.readouterr().out
    for said in ("N = 12", "4 classes", "judged by error", "1 block of CHORD", "engine", "run folder runs/order-1"):
        assert said in text
    assert re.search(r"on test: error 0\.\d+", text)
    assert main(ORDER) == 0
    assert "runs/order-2" in capsys.readouterr().out


def test_a_run_is_repeated_from_its_own_config(tmp_path):
    assert main([*ORDER, "--seed", "3", "--out", "one"]) == 0
    assert main(["train", "--config", "one/config.yaml", "--out", "two"]) == 0
    assert Path("one/config.yaml").read_text() == Path("two/config.yaml").read_text()
    assert Path("one/model/model.safetensors").read_bytes() == Path("two/model/model.safetensors").read_bytes()


def test_print_config_and_config_round_trip(capsys):
    assert main([*ORDER, "--model.init", "identity", "--print_config"]) == 0
    printed = capsys.readouterr().out
    Path("given.yaml").write_text(printed)
    assert main(["train", "--config", "given.yaml", "--print_config"]) == 0
    assert capsys.readouterr().out == printed
    assert yaml.safe_load(printed)["model"]["init"] == "identity"
    assert main(["train", "--config", "given.yaml", "--steps", "2", "--out", "run"]) == 0
    assert RunFolder(Path("run")).read_record()["steps"] == 2
    assert RunFolder(Path("run")).read_record()["model"]["init"] == "identity"


@pytest.mark.usefixtures("reviews")
def test_ones_own_file_gets_the_quick_recipe_unless_told_otherwise():
    own = ["train", *STARS, "--model.channels", "4", "--model.hidden", "4"]
    assert main([*own, "--steps", "1", "--learning_rate", "0.01", "--out", "quick"]) == 0
    said = RunFolder(Path("quick")).read_config()
    assert (said["learning_rate"], said["link_rate"], said["schedule"]) == (0.01, 0.03, "cosine")
    assert said["model"]["init"] == "local"
    assert main(["train", "--resume", "quick", "--steps", "2"]) == 0
    assert RunFolder(Path("quick")).read_record()["steps"] == 2
    assert main([*own, "--steps", "1", "--recipe", "paper", "--out", "paper"]) == 0
    assert "link_rate" not in RunFolder(Path("paper")).read_config()
    assert main([*own, "--steps", "1", "--model", "transformer", "--out", "rival"]) == 0
    assert "link_rate" not in RunFolder(Path("rival")).read_config()
    assert main([*ORDER, "--recipe", "quick", "--out", "order"]) == 0
    assert RunFolder(Path("order")).read_config()["learning_rate"] == 0.002


def test_the_quick_recipe_ends_by_itself(reviews):
    task = pm.data.load(str(reviews), text="review", label="stars")
    chosen = hastened(TrainOptions(task=str(reviews)), task)
    # 42 sequences in batches of 32: the paper's 200 passes are fewer steps than wanted.
    assert chosen.epochs == 200
    assert hastened(TrainOptions(task=str(reviews), batch=1), task).epochs == math.ceil(2000 / len(task.train))
    assert hastened(TrainOptions(task=str(reviews), minutes=3), task).epochs is None
    assert hastened(chosen, task) == chosen


@pytest.mark.parametrize("said", [{"link_rate": 1.0}, {"head_rate": 1.0}, {"settle": False}, {"schedule": "constant"}])
def test_the_quick_recipe_leaves_what_was_said(reviews, said):
    """Also where the same would hold if nothing were said, and nobody chose quick."""
    task = pm.data.load(str(reviews), text="review", label="stars")
    chosen = hastened(TrainOptions(task=str(reviews), steps=1, **said), dataclasses.replace(task, preset="hfdna"))
    assert {name: getattr(chosen, name) for name in said} == said
    unsaid = hastened(TrainOptions(task=str(reviews), steps=1), dataclasses.replace(task, preset="hfdna"))
    assert {name: getattr(unsaid, name) for name in said} != said


def test_the_quick_recipe_counts_passes_by_its_own_batch():
    drawn = pm.data.load("order", length=16, train=1600, validation=1, test=1)
    chosen = hastened(TrainOptions(task="pathfinder", recipe="quick"), dataclasses.replace(drawn, preset="pathfinder"))
    assert (chosen.batch, chosen.epochs) == (16, 2000 // 100)


@pytest.mark.usefixtures("reviews")
def test_ones_own_file_trains_evaluates_and_predicts(capsys):
    assert main(["train", *STARS, "--id", "name", *SMALL, *MODEL, "--out", "run"]) == 0
    record = RunFolder(Path("run")).read_record()
    assert record["model"]["outputs"] == 2
    assert record["model"]["padding"] == "length"
    assert main(["evaluate", "run"]) == 0
    assert f"accuracy {record['test']['accuracy']:.4f}" in capsys.readouterr().out
    for suffix in ("csv", "jsonl", "parquet"):
        assert main(["predict", "run", "reviews.csv", "--out", f"out/found.{suffix}"]) == 0
    with Path("out/found.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [f"r{number}" for number in range(60)]
    assert list(rows[0]) == ["name", "prediction", "probability_1", "probability_2"]
    for row in rows:
        shares = {label: float(row[f"probability_{label}"]) for label in ("1", "2")}
        assert sum(shares.values()) == pytest.approx(1)
        assert row["prediction"] == max(shares, key=shares.__getitem__)
    lines = [json.loads(line) for line in Path("out/found.jsonl").read_text().splitlines()]
    table = pq.read_table("out/found.parquet").to_pylist()
    for row, line, cells in zip(rows, lines, table, strict=True):
        assert {key: str(value) for key, value in line.items()} == row
        assert cells == line


def test_predictions_do_not_depend_on_the_batch(reviews):
    main(["train", str(reviews), "--text", "review", "--label", "stars", *SMALL, *MODEL, "--out", "run"])
    found = []
    for batch in ("1", "7"):
        main(["predict", "run", str(reviews), "--batch", batch, "--out", "found.jsonl"])
        found.append([json.loads(line) for line in Path("found.jsonl").read_text().splitlines()])
    for one, other in zip(*found, strict=True):
        assert one["probability_1"] == pytest.approx(other["probability_1"], abs=1e-5)
        assert one["id"] == other["id"]


@pytest.mark.slow
def test_a_file_of_a_gigabyte_is_predicted_in_little_memory(reviews):
    main(["train", str(reviews), "--text", "review", "--label", "stars", *SMALL, *MODEL, "--out", "run"])
    with Path("large.csv").open("w") as file:
        file.write("id,review\n")
        for number in range(10_000):
            file.write(f"{number},{'good bad ' * 12_000}\n")
    assert Path("large.csv").stat().st_size > 1e9
    measured = """
import resource, sys
from paramixer.cli import main
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
main(["predict", "run", "reviews.csv", "--out", "small.csv"])
before = peak()
main(["predict", "run", "large.csv", "--out", "large.out.csv"])
print("grew by", peak() - before, "MB")
"""
    found = subprocess.run([sys.executable, "-c", measured], text=True, capture_output=True, check=True).stdout
    assert int(re.search(r"grew by (\d+) MB", found)[1]) < 200
    with Path("large.out.csv").open() as file:
        assert sum(1 for _ in file) == 10_001


def test_values_are_predicted_from_lists_of_numbers(tmp_path):
    rows = [{"signal": [float(n), 1.0, 2.0], "value": n / 10} for n in range(40)]
    Path("signals.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert main(["train", "signals.jsonl", "--text", "signal", "--label", "value", *SMALL, *MODEL, "--out", "run"]) == 0
    assert RunFolder(Path("run")).read_record()["metric"] == "mse"
    assert main(["predict", "run", "signals.jsonl", "--out", "found.jsonl"]) == 0
    found = [json.loads(line) for line in Path("found.jsonl").read_text().splitlines()]
    assert [row["id"] for row in found] == [str(n) for n in range(40)]
    assert all(isinstance(row["prediction"], float) for row in found)


def test_resume_goes_on_where_it_was(capsys):
    assert main([*ORDER, "--out", "whole"]) == 0
    assert main([*ORDER[:-4], "--steps", "3", *MODEL, "--out", "parts"]) == 0
    assert main(["train", "--resume", "parts"]) == 2
    assert "parts is finished; give more --steps" in capsys.readouterr().err
    assert main(["train", "--resume", "parts", "--steps", "6"]) == 0
    assert Path("whole/model/model.safetensors").read_bytes() == Path("parts/model/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "name a task or a file"),
        (["train", "ordre"], "did you mean 'order'"),
        (["train", "order", "--lenth", "12"], "did you mean --length?"),
        (["train", "order", "--model.chanels", "12"], "did you mean --model.channels?"),
        (["train", "order", "--batch", "0"], "batch=0"),
        (["train", "order", "--model.channels", "0", "--length", "12"], "channels=0; it must be at least 1"),
        (["train", "--resume", "nowhere"], "nowhere is no run folder"),
        (["train", "--config", "nowhere.yaml"], "nowhere.yaml"),
        (["evaluate", "nowhere"], "nowhere is no run folder"),
        (["predict", "nowhere", "x.csv"], "nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_told_in_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("paramixer: ")
    assert message in error
    assert error.count("\n") == 1


def test_what_does_not_fit_a_run_is_refused(reviews, capsys):
    main(["train", str(reviews), "--text", "review", "--label", "stars", *SMALL, *MODEL, "--out", "run"])
    assert main([*ORDER, "--out", "run"]) == 2
    assert "there is a run in run already" in capsys.readouterr().err
    assert main(["predict", "run", str(reviews), "--out", "found.xlsx"]) == 2
    assert ".csv, .jsonl, .parquet" in capsys.readouterr().err
    Path("other.csv").write_text("words\nhello\n")
    assert main(["predict", "run", "other.csv"]) == 2
    assert "review" in capsys.readouterr().err
    assert not Path("predictions.csv").exists()
    reviews.write_text(reviews.read_text() + "r99,new,1\n")
    assert main(["evaluate", "run"]) == 2
    assert "the data has changed" in capsys.readouterr().err
    document = json.loads(Path("run/model/inputs.json").read_text())
    Path("run/model/inputs.json").write_text(json.dumps(document | {"format": 99}))
    assert main(["predict", "run", str(reviews)]) == 2
    assert "has format 99" in capsys.readouterr().err


def test_a_terminal_is_not_needed_and_ctrl_c_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "paramixer", *ORDER[:2], "--length", "64", "--steps", "100000", "--out", "run"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    while "run folder" not in process.stdout.readline():
        assert process.poll() is None
    metrics = Path("run/metrics.jsonl")
    while not (metrics.exists() and "train" in metrics.read_text()):
        assert process.poll() is None
    process.send_signal(2)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with: paramixer train --resume run" in errors
    assert list(Path("run/state").iterdir())


def test_nothing_in_the_package_reads_or_writes_pickles():
    for path in Path(pm.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"^\s*(import|from) (pickle|dill|cloudpickle|joblib|shelve|marshal)\b", text, re.MULTILINE)
        assert not re.search(r"torch\.(save|load)\(", text), path
        assert "allow_pickle=True" not in text, path


def test_what_would_be_lost_or_ignored_is_refused(reviews, capsys):
    assert main([*ORDER, "--out", "run"]) == 0
    Path("a-file").write_text("")
    Path("new.csv").write_text("text\nabc\n")
    for words, message in (
        (
            ["train", "--resume", "run", "--steps", "9", "--learning_rate", "0.5"],
            "of learning_rate nothing would be heard",
        ),
        (["train", "--resume", "run", "--steps", "9", "--model", "s4d"], "of model nothing would be heard"),
        ([*ORDER, "--out", "a-file"], "is a file; give a folder"),
        ([*ORDER, "--until", "acc=0.9"], "order is judged by error, not by acc"),
        ([*ORDER, "--validation", "0.5"], "validation=0.5; sequences are drawn"),
        ([*ORDER, "--train", "0"], "train=0; sequences are drawn"),
        (["predict", "run", "new.csv", "--out", "./new.csv"], "which would be lost"),
        (["predict", "nowhere", "new.csv"], "there is no run folder nowhere"),
    ):
        capsys.readouterr()
        assert main(words) == 2, words
        assert message in capsys.readouterr().err
    assert Path("new.csv").read_text() == "text\nabc\n"
