"""Pages of runs: what stands on them, that they need nothing beside themselves, and that text stays text."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import paramixer as pm
from paramixer.cli import main
from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.report import charts, sections
from paramixer.report.factor_data import mixing_of
from paramixer.report.findings import Findings
from paramixer.report.sequence import look_of, visible
from paramixer.training.run_folder import RunFolder
from report.runs import HOSTILE


def page(out: Path, *runs: Path, flags: tuple[str, ...] = ()) -> str:
    assert main(["report", *map(str, runs), "--out", str(out), *flags]) == 0
    return out.read_text(encoding="utf-8")


def data(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


KINDS = ["order", "two-blocks", "adding", "transformer", "hostile", "ngrams", "pathfinder", "listops", "genome"]


@pytest.mark.parametrize("name", KINDS)
def test_a_page_shows_what_the_record_says_and_needs_nothing_else(run, tmp_path, name):
    folder = run(name)
    text = page(tmp_path / "page.html", folder)
    record = RunFolder(folder).read_record()
    assert f'<h2 id="name-1">{name}</h2>' in text
    assert f"<strong>{record['test'][record['metric']]:.4g}</strong><span>{record['metric']} on test" in text
    for heading in ("Answers on test", "Data", "Speed and memory", "Settings"):
        assert heading in text
    assert "Learning" in text
    assert ("What mixes with what" in text) == (name not in ("ngrams", "transformer"))
    assert ("What speaks for the answer" in text) == (name == "transformer")
    assert ("ROC" in text) == (name in ("hostile", "ngrams", "pathfinder", "genome"))
    assert ("Confusion" in text) == ("Calibration" in text) == (name != "adding")
    assert ("Answers and truth" in text) == (name == "adding")
    # Nothing is fetched: every address is data, a place on the page, or a name.
    for address in re.findall(r'(?:src|href)="([^"]*)"', text):
        assert address.startswith(("data:image/png;base64,", "#")), address
    assert "url(" not in re.sub(r"url\(#", "", text)
    identifiers = re.findall(r'\bid="([^"]*)"', text)
    assert len(identifiers) == len(set(identifiers))


def test_only_the_page_s_own_script_may_run(run, tmp_path):
    text = page(tmp_path / "page.html", run("hostile"))
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text


def test_hostile_text_is_escaped_and_whole(run, tmp_path):
    text = page(tmp_path / "page.html", run("hostile"))
    assert text.count("<script") == 2
    assert "<img src=x" not in text
    assert "<b>good" not in text
    assert html.escape("<b>good") in text
    assert "bad &amp; worse" in text
    shown = ["".join(one["look"]["symbols"]) for one in data(text)["runs"][0]["explorers"]]
    assert any(any(visible(start)[:20] in one for start in HOSTILE) for one in shown)


def test_several_runs_stand_side_by_side(run, tmp_path):
    text = page(tmp_path / "page.html", run("order"), run("transformer"), run("ngrams"))
    compared = text[text.index("Compared") : text.index('<article id="run-1"')]
    assert re.findall(r'<th scope="col">([^<]*)</th>', compared) == ["order", "transformer", "ngrams"]
    rows = dict(re.findall(r'<th scope="row">([^<]*)</th>((?:<td>[^<]*</td>)+)', compared))
    for name, folder in (("error on test", "order"), ("accuracy on test", "ngrams")):
        record = RunFolder(run(folder)).read_record()
        assert f"<td>{record['test'][record['metric']]:.4g}</td>" in rows[name]
    assert rows["model"] == "<td>CHORD</td><td>transformer</td><td>ngrams</td>"
    assert compared.count("<svg") == 4
    assert rows["model.channels"] == "<td>8</td><td>32</td><td>32</td>"
    assert "model.ring" not in rows
    assert [len(part["explorers"]) > 0 for part in data(text)["runs"]] == [True, True, False]


def test_runs_of_one_name_are_told_apart(run, tmp_path):
    copy = tmp_path / "order"
    shutil.copytree(run("order"), copy)
    text = page(tmp_path / "page.html", run("order"), copy, flags=("--sequences", "4"))
    assert f'<h2 id="name-2">2: {copy}</h2>' in text
    identifiers = re.findall(r'\bid="([^"]*)"', text)
    assert len(identifiers) == len(set(identifiers))


def test_a_run_without_its_data_still_has_a_page(run, tmp_path):
    copy = tmp_path / "moved"
    shutil.copytree(run("hostile"), copy)
    config = RunFolder(copy).read_config()
    RunFolder(copy).write_config({**config, "task": str(tmp_path / "nowhere.csv")})
    text = page(tmp_path / "page.html", copy)
    assert "The data is not at hand: " in text
    assert "nowhere.csv" in text
    assert "Learning" in text
    assert "Answers on test" not in text


def test_a_run_whose_data_has_changed_says_so(run, tmp_path):
    copy = tmp_path / "other"
    shutil.copytree(run("order"), copy)
    config = RunFolder(copy).read_config()
    RunFolder(copy).write_config({**config, "length": 25})
    assert "The data has changed since the run was trained" in page(tmp_path / "page.html", copy)


def test_a_run_under_way_shows_its_curves(run, tmp_path):
    copy = tmp_path / "under-way"
    shutil.copytree(run("order"), copy)
    folder = RunFolder(copy)
    record = folder.read_record()
    for name in ("metric", "validation", "test", "steps", "best_step", "stopped"):
        del record[name]
    del record["format"]
    folder.write_record({**record, "finished": False})
    shutil.rmtree(folder.model)
    text = page(tmp_path / "page.html", copy)
    assert "not finished" in text
    assert "The run has no model yet" in text
    assert "Validation error" in text


def test_fewer_sequences_are_asked_where_that_is_wanted(run, tmp_path):
    assert "5 of the 24 sequences, evenly spread" in page(
        tmp_path / "page.html", run("order"), flags=("--sequences", "5")
    )
    assert "All 24 sequences: " in page(tmp_path / "page.html", run("order"))


def test_colours_belong_to_runs_and_every_run_has_its_name(run, tmp_path):
    lines = [{"kind": "train", "step": step, "loss": 1.0 / step} for step in (1, 2)]
    other = [{"kind": "train", "step": step, "error": 1.0 / step} for step in (1, 2)]
    chart = charts.curves([("a", other), ("_b", lines), ("c", lines)], "train", "loss", "Loss")
    assert "var(--series-0)" not in chart.svg
    assert "var(--series-1)" in chart.svg
    assert re.findall(r">\s*([_bc]+)</text>", chart.svg) == ["_b", "c"]
    assert "𠜎" in charts.curves([("𠜎", lines), ("b", lines)], "train", "loss", "Loss").svg
    eight = charts.curves([(str(number), lines) for number in range(8)], "train", "loss", "Loss")
    assert eight.svg.count("stroke-dasharray") >= 2


def test_many_classes_are_shown_by_their_confusions():
    labels = [f"class {number}" for number in range(60)]
    counts = np.eye(60, dtype=np.int64) * 9
    counts[3, 5], counts[7, 1] = 4, 2
    assert sections._most_confused(labels, counts) == [("class 3", "class 5", 4), ("class 7", "class 1", 2)]


def damaged(run: Path, folder: Path, name: str, change: object) -> Path:
    copy = folder / "damaged"
    shutil.copytree(run, copy)
    path = copy / name
    path.write_bytes(change(path.read_bytes()))
    return copy


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("record.json", lambda found: b'{"format": 1, "finished": true}', "record.json is damaged: its task is None"),
        (
            "record.json",
            lambda found: found.replace(b'"peak_memory": ', b'"peak_memory": null, "was": '),
            "its peak_memory is None",
        ),
        ("metrics.jsonl", lambda found: found + b'{"a": 1}\n', "is no line of metrics"),
        ("metrics.jsonl", lambda found: found + b"[1]\n", "is no line of metrics"),
        ("metrics.jsonl", lambda found: found.replace(b'"loss": ', b'"loss": "x", "y": '), "is no line of metrics"),
        ("metrics.jsonl", lambda found: found + b"\xff\n", "metrics.jsonl is damaged"),
    ],
)
def test_damaged_runs_are_named(run, tmp_path, capsys, name, change, said):
    copy = damaged(run("order"), tmp_path, name, change)
    assert main(["report", str(copy), "--out", str(tmp_path / "page.html")]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert name in told


def test_a_damaged_model_costs_only_what_needs_it(run, tmp_path):
    copy = damaged(run("order"), tmp_path, "model/model.safetensors", lambda found: found[:100])
    text = page(tmp_path / "page.html", copy, run("transformer"))
    assert "The model cannot be read: " in text
    assert data(text)["runs"][0]["explorers"] == []
    assert "Answers on test" in text


def test_where_a_page_may_go(run, tmp_path, capsys):
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    assert main(["report", str(run("order")), "--sequences", "2", "--out", str(tmp_path / "there")]) == 0
    assert (tmp_path / "there" / "report.html").is_file()
    assert main(["report", "nowhere", "--out", str(tmp_path / "file" / "page.html")]) == 2
    assert "file is a file, not a folder" in capsys.readouterr().err


def test_what_cannot_be_seen_has_a_sign():
    assert visible("plain text, שלום") == "plain text, שלום"
    assert visible("a\nb\tc") == "a⏎b⇥c"
    assert visible("a\u202eb") == "a⟨U+202E⟩b"
    assert visible("\u200b") == "⟨U+200B⟩"
    assert visible("\u00a0 ") == "⟨U+00A0 U+0020⟩"
    assert visible("") == "⟨⟩"
    assert visible("\u2800") == "⟨U+2800⟩"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "nowhere"], "there is no run folder nowhere"),
        (["report", "."], "is no run folder"),
        (["report", ".", "--sequences", "0"], "sequences=0; it must be at least 1"),
    ],
)
def test_wrong_reports_are_refused(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def unpacked(block: dict, length: int) -> np.ndarray:
    links = len(block["offsets"][0])
    entries = np.frombuffer(base64.b64decode(block["entries"]), np.int8).reshape(len(block["offsets"]), length, links)
    return entries * np.array(block["scales"])[:, None]


@pytest.mark.parametrize(("padding", "count"), [("symbol", 20), ("symbol", 13), ("length", 13)])
def test_the_page_s_factors_are_the_model_s_up_to_rounding(padding, count):
    config = pm.ParamixerConfig(
        length=20, vocabulary=7, outputs=3, channels=6, hidden=5, blocks=2, pooling="mean", padding=padding, pad=0
    )
    model = pm.Paramixer(config, generator=torch.Generator().manual_seed(0)).eval()
    tokens = torch.randint(1, 7, (count,), generator=torch.Generator().manual_seed(1))
    found = mixing_of(model, tokens, 10**6)
    assert found.length == (20 if padding == "symbol" else count)
    assert (len(found.blocks), found.left_out) == (2, 0)
    padded = torch.nn.functional.pad(tokens, (0, found.length - count))
    written_from = model._embed(padded[None])
    for block, packed in zip(model.blocks, found.blocks, strict=True):
        exact = block.factors(written_from)[0].detach().numpy()
        step = np.array(packed["scales"])[:, None]
        assert (np.abs(unpacked(packed, found.length) - exact) <= 0.501 * step).all()
        assert packed["offsets"] == block.offsets.tolist()


def test_blocks_that_are_too_large_are_left_out():
    config = pm.ParamixerConfig(length=16, vocabulary=7, outputs=3, channels=6, hidden=5, blocks=3)
    model = pm.Paramixer(config).eval()
    one = mixing_of(model, torch.ones(16, dtype=torch.int64), 10**6).size // 3
    found = mixing_of(model, torch.ones(16, dtype=torch.int64), 2 * one + 10)
    assert (len(found.blocks), found.left_out) == (2, 1)


def test_sequences_look_like_what_they_are():
    def info(preset: str = "text", features: int | None = None, **fields: object) -> TaskInfo:
        vocabulary = Vocabulary(**fields) if fields else None
        return TaskInfo(
            name="own",
            preset=preset,
            metric="accuracy",
            target="class",
            length=16,
            vocabulary=vocabulary,
            features=features,
        )

    numbers = tuple(map(str, range(256)))
    assert look_of(torch.arange(16), info("image", symbols=numbers, unit="number")).kind == "image"
    assert look_of(torch.arange(15), info("image", symbols=numbers, unit="number")).kind == "curve"
    assert look_of(torch.arange(16), info("text", symbols=numbers, unit="number")).kind == "curve"
    assert look_of(torch.zeros(5, 3), info(features=3)).length == 5
    bases = look_of(torch.tensor([1, 2, 0]), info(symbols=("N", "A", "C"), pad_symbol="N", unknown_symbol="N"), 5)
    assert (bases.kind, bases.symbols) == ("bases", ("A", "C", "N", "N", "N"))
    text = look_of(torch.tensor([2, 3, 1]), info(symbols=("<pad>", "<unknown>", "<cls>", "x")), 4)
    assert (text.kind, text.symbols) == ("text", ("⌂", "x", "�", "·"))
    words = look_of(torch.tensor([0, 1, 1]), info(symbols=("[MAX", "5"), unit="word"))
    assert (words.kind, words.beginning(2)) == ("words", "[MAX 5…")


def test_findings_by_hand():
    answers = torch.tensor([[4.0, 0.0], [0.0, 1.0], [0.0, 3.0], [0.5, 0.0]])
    targets = torch.tensor([0, 1, 0, 1])
    losses = torch.nn.functional.cross_entropy(answers, targets, reduction="none").double().numpy()
    found = Findings(np.arange(4), 4, answers, targets, {}, losses)
    assert found.confusion().tolist() == [[1, 1], [1, 1]]
    assert found.worst() == [2, 3]
    false, true = found.roc()
    assert float(np.trapezoid(true, false)) == pytest.approx(0.5)
    mean, rate, counts, gap = found.calibration()
    assert counts.tolist() == [1, 1, 2]
    assert rate.tolist() == [0, 1, 0.5]
    confidence = answers.double().softmax(-1).amax(-1)
    assert mean[0] == pytest.approx(float(confidence[3]))
    by_hand = (confidence[3] + (1 - confidence[1]) + 2 * abs((confidence[0] + confidence[2]) / 2 - 0.5)) / 4
    assert gap == pytest.approx(float(by_hand))
