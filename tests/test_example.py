"""The examples, one of which make demo runs."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import paramixer as pm


def example(name: str):
    path = Path(__file__).parent.parent / "examples" / f"{name}.py"
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_demo_trains_evaluates_predicts_and_says_where_everything_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = example("demo").main(["--length", "16", "--steps", "5"])
    text = capsys.readouterr().out
    assert f"everything is in {folder}" in text
    assert text.count("predicted ") == 10
    assert pm.Paramixer.from_pretrained(folder / "model").config.length == 16
    assert json.loads((folder / "record.json").read_text())["steps"] == 5


@pytest.mark.slow
def test_the_demo_learns_to_add(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = example("demo").main(["--length", "32", "--steps", "1000"])
    assert json.loads((folder / "record.json").read_text())["test"]["error"] < 0.01


def test_a_training_loop_of_ones_own(tmp_path, capsys):
    error = example("adding").main(["--length", "16", "--steps", "3", "--out", str(tmp_path / "run")])
    assert 0 <= error <= 100
    assert f"error {error:5.1f} %" in capsys.readouterr().out
    assert pm.Paramixer.from_pretrained(tmp_path / "run").config.length == 16
