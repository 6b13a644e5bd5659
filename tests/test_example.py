"""The example that make demo runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import paramixer as pm

PATH = Path(__file__).parent.parent / "examples" / "adding.py"
specification = importlib.util.spec_from_file_location("adding", PATH)
adding = importlib.util.module_from_spec(specification)
specification.loader.exec_module(adding)


def test_the_demo_shows_its_error_and_saves_a_model_that_loads(tmp_path, capsys):
    error = adding.main(["--length", "16", "--steps", "3", "--out", str(tmp_path / "run")])
    assert 0 <= error <= 100
    assert f"error {error:5.1f} %" in capsys.readouterr().out
    assert pm.Paramixer.from_pretrained(tmp_path / "run").config.length == 16


@pytest.mark.slow
def test_the_demo_learns_to_add(tmp_path):
    assert adding.main(["--length", "32", "--steps", "700", "--out", str(tmp_path / "run")]) < 1
