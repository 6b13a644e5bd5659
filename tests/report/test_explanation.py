"""Figure and page of one sequence, of a run's data or of a file."""

from __future__ import annotations

import io
import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

import paramixer as pm
from paramixer.report.explanation import explain_sequence
from paramixer.report.explanation_figure import _draw_tracks, draw_explanation, list_maps
from paramixer.report.sequence import SequenceView
from paramixer.training.runs.folder import RunFolder
from report.pages import read_explorers
from report.runs import HOSTILE, KINDS, write_hostile_table


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ngrams"])
def test_every_kind_of_sequence_has_a_figure_and_a_page(explanation, kind):
    png, text = explanation(kind)
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    # The figure is not blank and has more colors than text.
    assert pixels.std() > 5
    assert (np.ptp(pixels.astype(int), axis=2) > 60).any()
    [[explorer]] = read_explorers(text)
    assert explorer["title"].startswith("test 2: prediction ")
    assert (", target " if kind == "adding" else ", label ") in explorer["title"]
    assert bool(explorer["blocks"]) == (kind != "transformer")
    kinds = {"adding": "curve", "pathfinder": "image", "listops": "words", "genome": "bases"}
    assert explorer["view"]["kind"] == kinds.get(kind, "text")
    assert text.count("data:image/png;base64,") == 1


@pytest.fixture
def no_figure(monkeypatch) -> None:
    """Leave out the figure, the slowest part, where a test is about the page."""
    monkeypatch.setattr("paramixer.report.explanation.draw_explanation", lambda *arguments: b"")


@pytest.mark.usefixtures("no_figure")
def test_page_has_the_attribution_that_the_library_computes(run):
    _, text = explain_sequence(run("order"), index=1, position=7, split="validation")
    [[explorer]] = read_explorers(text)
    model = pm.Paramixer.from_pretrained(run("order") / "model")
    task = pm.data.load("order", length=24, train=40, validation=16, test=24, seed=1)
    expected = pm.explain(model, task.validation[1].inputs, [7])
    np.testing.assert_allclose(explorer["evidence"], expected.evidence, rtol=6e-3)
    np.testing.assert_allclose(explorer["occlusion"], expected.occlusion, rtol=6e-3, atol=1e-9)
    assert explorer["start"] == 7


@pytest.mark.usefixtures("no_figure")
def test_a_sequence_of_a_file_and_a_class_by_name(run, tmp_path):
    table = write_hostile_table(tmp_path)
    _, text = explain_sequence(run("hostile") / "model", file=table, index=4, target="bad & worse")
    [[explorer]] = read_explorers(text)
    assert "".join(explorer["view"]["symbols"]).startswith("⌂" + HOSTILE[4][:10])
    assert "attribution of bad &amp; worse" in text
    assert ", label " not in explorer["title"]
    with pytest.raises(ValueError, match="has no sequence 80"):
        explain_sequence(run("hostile"), file=table, index=80)


@pytest.mark.parametrize(
    ("kind", "arguments", "error"),
    [
        ("order", {"index": 24}, "index=24; test has 24 sequences"),
        ("order", {"index": -1}, "index=-1; sequences are counted from 0"),
        ("order", {"split": "tset"}, "split='tset'; it must be one of train, validation, test"),
        ("order", {"position": 24}, "position 24 is outside the sequence, 0 to 23"),
        ("order", {"target": "ZZ"}, "the model has no class 'ZZ'; its classes are XX, XY, YX, YY"),
        ("adding", {"target": "1"}, "the model has no class '1'; it predicts a value"),
        ("ngrams", {}, "is a model of n-grams, which has no positions to explain"),
        ("order", {"window": 0}, "window=0; it must be at least 1"),
    ],
)
def test_wrong_arguments_are_refused(run, kind, arguments, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        explain_sequence(run(kind), **arguments)


def test_a_missing_file_is_refused(run, tmp_path):
    with pytest.raises((OSError, ValueError), match="there is no such file or folder"):
        explain_sequence(run("order"), file=tmp_path / "nowhere.csv")


def test_overflow_is_refused(run, tmp_path):
    huge = np.zeros((1, 20, 2), np.float32)
    huge[0, 3, 0] = 3e38
    np.save(tmp_path / "huge.npy", huge)
    with pytest.raises(ValueError, match="are not finite; there is nothing to draw"):
        explain_sequence(run("adding"), file=tmp_path / "huge.npy")


def test_a_run_without_a_model_is_refused(run, tmp_path):
    copy = tmp_path / "early"
    shutil.copytree(run("order"), copy)
    shutil.rmtree(copy / "model")
    with pytest.raises(ValueError, match="the run has no model yet"):
        explain_sequence(copy)


def test_a_sequence_of_changed_data_is_refused(run, tmp_path):
    copy = tmp_path / "other"
    shutil.copytree(run("order"), copy)
    config = RunFolder(copy).config
    config.write_text(re.sub(r"seed: 1", "seed: 7", config.read_text()))
    with pytest.raises(ValueError, match="the data has changed since"):
        explain_sequence(copy)


def test_titles_of_maps_can_be_read_alone():
    model = pm.Paramixer(
        pm.ParamixerConfig(layer="paper", length=8, vocabulary=9, outputs=2, channels=4, hidden=4, blocks=2)
    )
    explanation = pm.explain(model, torch.arange(1, 9), [5], window=4)
    assert [title for title, _ in list_maps(explanation)] == [
        "row 5 of the mixing matrix of block 1: where position 5 reads from",
        "column 5 of the mixing matrix of block 1: which positions read from position 5",
        "row 5 of the mixing matrix of block 2: where position 5 reads from",
        "column 5 of the mixing matrix of block 2: which positions read from position 5",
        "row 5 of the product of all blocks: where position 5 reads from in the end",
        "Jacobian of position 5: how strongly it depends on each position of the input",
        "gradient x input: how much each position speaks for the answer",
        "occlusion, 4 positions at a time: by how much the score of the answer falls without them",
    ]


@pytest.mark.parametrize("kind", ["curve", "text", "long text"])
def test_all_panels_share_one_axis_and_mark_the_position(kind):
    length = 240 if kind == "long text" else 20
    sizes = {"features": 1} if kind == "curve" else {"vocabulary": 9}
    config = pm.ParamixerConfig(layer="paper", length=length, outputs=2, channels=4, hidden=4, **sizes)
    explanation = pm.explain(
        pm.Paramixer(config),
        torch.rand(length, 1) if kind == "curve" else torch.arange(length) % 8,
        [7],
    )
    numbers = np.random.default_rng(0).normal(size=(length, 1)).astype(np.float32)
    view = SequenceView("curve", numbers=numbers) if kind == "curve" else SequenceView("text", tuple("abcdefgh" * 30))
    view = view if kind == "curve" else SequenceView("text", view.symbols[:length])
    figure = _draw_tracks(view, list_maps(explanation), 7)
    # Lines of a long text have no axis; the position has a frame there.
    tracks = figure.axes[1:] if kind == "long text" else figure.axes
    assert len(tracks) == len(list_maps(explanation)) + (kind != "long text")
    assert {axes.get_xlim() for axes in tracks} == {(-0.5, length - 0.5)}
    for axes in tracks:
        assert [line.get_xdata().tolist() for line in axes.lines if line.get_marker() == "v"] == [[7]]
    assert [bool(axes.xaxis.label.get_text()) for axes in tracks] == [False] * (len(tracks) - 1) + [True]


def test_letters_that_the_font_lacks_and_mathematics_are_drawn():
    model = pm.Paramixer(pm.ParamixerConfig(layer="paper", length=8, vocabulary=9, outputs=2, channels=4, hidden=4))
    explanation = pm.explain(model, torch.arange(1, 9))
    png = draw_explanation(SequenceView("text", tuple("$a^𠜎🧬\nש$")), explanation, "$\\frac{$ 𠜎")
    assert Image.open(io.BytesIO(png)).width > 500
