"""``paramixer explain``: a picture and a page for one sequence, of a run's data or of a file."""

from __future__ import annotations

import io
import json
import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

import paramixer as pm
from paramixer.cli import main
from paramixer.report import explanation_figure
from paramixer.report.command import ExplainOptions, explain_answer
from paramixer.report.sequence import Look
from paramixer.training.run_folder import RunFolder
from report.runs import HOSTILE, hostile_table


def explained(run, tmp_path, *flags):
    out = tmp_path / "found"
    assert main(["explain", str(run), "--out", str(out), *flags]) == 0
    text = out.with_suffix(".html").read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    return (
        np.asarray(Image.open(out.with_suffix(".png")).convert("RGB")),
        text,
        json.loads(data)["runs"][0]["explorers"][0],
    )


@pytest.mark.parametrize(
    "name", ["order", "two-blocks", "adding", "transformer", "hostile", "pathfinder", "listops", "genome"]
)
def test_every_kind_of_sequence_has_a_picture_and_a_page(run, tmp_path, name):
    pixels, text, explorer = explained(run(name), tmp_path, "--index", "2")
    # Something is drawn, in more than the colours of text.
    assert pixels.std() > 5
    assert (np.ptp(pixels.astype(int), axis=2) > 60).any()
    assert explorer["title"].startswith("test 2: ")
    assert ", truth " in explorer["title"]
    assert bool(explorer["blocks"]) == (name != "transformer")
    kinds = {"adding": "curve", "pathfinder": "image", "listops": "words", "genome": "bases"}
    assert explorer["look"]["kind"] == kinds.get(name, "text")
    assert text.count("data:image/png;base64,") == 1


def test_the_page_carries_the_evidence_that_the_library_finds(run, tmp_path):
    _, _, explorer = explained(run("order"), tmp_path, "--index", "1", "--position", "7", "--split", "validation")
    model = pm.Paramixer.from_pretrained(run("order") / "model")
    task = pm.data.load("order", length=24, train=40, validation=16, test=24, seed=1)
    found = pm.explain(model, task.validation[1].inputs, [7])
    np.testing.assert_allclose(explorer["evidence"], found.evidence, rtol=6e-3)
    np.testing.assert_allclose(explorer["occlusion"], found.occlusion, rtol=6e-3, atol=1e-9)
    assert explorer["start"] == 7


def test_a_file_of_one_s_own_and_a_class_by_name(run, tmp_path):
    path = hostile_table(tmp_path)
    model = run("hostile") / "model"
    _, text, explorer = explained(model, tmp_path, "--input", str(path), "--index", "4", "--target", "bad & worse")
    shown = "".join(explorer["look"]["symbols"])
    assert shown.startswith("⌂" + HOSTILE[4][:10])
    assert "evidence for bad &amp; worse" in text
    assert "truth" not in explorer["title"]


@pytest.mark.parametrize(
    ("name", "flags", "said"),
    [
        ("order", ["--index", "24"], "index=24; test has 24 sequences"),
        ("order", ["--index", "-1"], "index=-1; sequences are counted from 0"),
        ("order", ["--position", "24"], "position 24 is outside the sequence, 0 to 23"),
        ("order", ["--target", "ZZ"], "the model knows no class 'ZZ'; it knows XX, XY, YX, YY"),
        ("adding", ["--target", "1"], "the model knows no class '1'; it answers with a value"),
        ("ngrams", [], "holds ngrams, which has no positions to explain"),
        ("order", ["--input", "nowhere.csv"], "there is no such file or folder"),
        ("order", ["--window", "0"], "window=0; it must be at least 1"),
    ],
)
def test_what_cannot_be_explained_is_refused(run, tmp_path, capsys, name, flags, said):
    assert main(["explain", str(run(name)), "--out", str(tmp_path / "found"), *flags]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_numbers_that_overflow_are_told(run, tmp_path, capsys):
    huge = np.zeros((1, 20, 2), np.float32)
    huge[0, 3, 0] = 3e38
    np.save(tmp_path / "huge.npy", huge)
    words = ["explain", str(run("adding")), "--input", str(tmp_path / "huge.npy"), "--out", str(tmp_path / "found")]
    assert main(words) == 2
    assert "are not finite, and nothing can be drawn" in capsys.readouterr().err


def test_a_run_without_a_model_says_so(run, tmp_path, capsys):
    copy = tmp_path / "early"
    shutil.copytree(run("order"), copy)
    shutil.rmtree(copy / "model")
    assert main(["explain", str(copy), "--out", str(tmp_path / "found")]) == 2
    assert "the run has no model yet" in capsys.readouterr().err


def test_a_sequence_of_other_data_is_not_explained(run, tmp_path, capsys):
    copy = tmp_path / "other"
    shutil.copytree(run("order"), copy)
    config = RunFolder(copy).read_config()
    RunFolder(copy).write_config({**config, "seed": 7})
    assert main(["explain", str(copy), "--out", str(tmp_path / "found")]) == 2
    assert "the data has changed since" in capsys.readouterr().err


def test_where_picture_and_page_may_go(run, tmp_path, capsys):
    (tmp_path / "there").mkdir()
    for out, names in (("there", ("there/explanation",)), ("one.png", ("one",)), ("two.html", ("two",))):
        assert main(["explain", str(run("order")), "--out", str(tmp_path / out)]) == 0
        assert all((tmp_path / f"{name}{end}").is_file() for name in names for end in (".png", ".html"))
    (tmp_path / "taken.html").mkdir()
    assert main(["explain", str(run("order")), "--out", str(tmp_path / "taken")]) == 2
    assert "taken.html is a folder" in capsys.readouterr().err
    assert not (tmp_path / "taken.png").exists()


def test_a_file_has_only_so_many_sequences(run, tmp_path, capsys):
    path = hostile_table(tmp_path)
    words = ["explain", str(run("hostile")), "--input", str(path), "--index", "80", "--out", str(tmp_path / "found")]
    assert main(words) == 2
    assert "has no sequence 80" in capsys.readouterr().err


def test_letters_that_the_font_lacks_are_boxes_and_mathematics_is_text():
    model = pm.Paramixer(pm.ParamixerConfig(length=8, vocabulary=9, outputs=2, channels=4, hidden=4))
    found = pm.explain(model, torch.arange(1, 9))
    drawn = explanation_figure.draw(Look("text", tuple("$a^𠜎🧬\nש$")), found, "$\\frac{$ 𠜎")
    assert Image.open(io.BytesIO(drawn)).width > 500


def test_it_can_be_called_from_python(run, tmp_path):
    files = explain_answer(ExplainOptions(run("order"), out=tmp_path / "deep" / "found"), Console(quiet=True))
    assert [path.name for path in files] == ["found.png", "found.html"]
    assert all(path.is_file() for path in files)
