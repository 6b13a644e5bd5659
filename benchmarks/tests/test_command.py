"""``python -m benchmarks`` from its words to records and tables."""

from __future__ import annotations

import dataclasses
import json

import pytest

from benchmarks.__main__ import main
from benchmarks.record import write_record
from benchmarks.tests import samples

NAMES = ("block", "scaling", "memory", "step", "training", "models", "figures", "gpu-kernels")


@pytest.mark.parametrize("name", [*NAMES, "show"])
def test_every_command_explains_itself(name, capsys):
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"python -m benchmarks {name}" in text
    if name != "show":
        assert "--quick" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fly"], "fly"),
        (["block", "--lenth", "3"], "--lenth"),
        (["block", "--batch", "0"], "batch=0; it must be at least 1"),
        (["block", "--length", "many"], "many"),
        (["block", "--implementations", "rools"], "there is no implementation 'rools'; choose from paramixer, rolls"),
        (["step", "--presets", "imge"], "did you mean 'image'"),
        (["memory", "--checkpoint-every", "0"], "checkpoint_every=[0]; give whole numbers from 1"),
        (["figures", "--device", "cuda"], "choose --device cpu, or run it on a GPU"),
        (["show", "nowhere.json"], "there is no record nowhere.json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_told_in_one_line(words, message, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("benchmarks: ")
    assert error.count("\n") == 1
    assert message in error


def test_a_backend_that_cannot_serve_is_told_in_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PARAMIXER_BACKEND", "triton")
    assert main(["block", "--quick", "--out", str(tmp_path)]) == 2
    assert "backend 'triton' cannot serve" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_block_verifies_times_and_writes_record_and_plot(tmp_path, capsys):
    words = ["block", "--quick", "--implementations", "rolls", "gather", "scatter", "softmax", "--threads", "1"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "gather-scatter" in text
    assert max(map(len, text.splitlines()[:-1])) <= 80
    document = json.loads((tmp_path / "block-quick.json").read_text())
    assert document["machine"]["threads"] == 1
    assert document["settings"]["quick"] is True
    assert (tmp_path / "block-quick.svg").exists()
    assert main(["show", str(tmp_path / "block-quick.json")]) == 0
    # Where the line is broken depends on the numbers.
    assert "A quick run" in " ".join(capsys.readouterr().out.split())


def test_show_updates_a_page(tmp_path):
    path = write_record(samples.record("figures", samples.FIGURES), tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- bench figures -->\n<!-- end -->\n")
    assert main(["show", str(path), "--into", str(page)]) == 0
    assert "| against rolls | at least 5x | 6.12x | yes |" in page.read_text()


def test_a_quick_or_partial_record_replaces_no_whole_one(tmp_path):
    for settings, name in (
        ({}, "models.json"),
        ({"quick": True}, "models-quick.json"),
        ({"models": ["s4d"]}, "models-some.json"),
    ):
        record = dataclasses.replace(samples.record("models", samples.MODELS), settings=settings)
        assert write_record(record, tmp_path).name == name
