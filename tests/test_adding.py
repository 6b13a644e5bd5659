"""The example, and the worked examples of the paper."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

import paramixer as pm

PATH = Path(__file__).parent.parent / "examples" / "adding.py"
specification = importlib.util.spec_from_file_location("adding", PATH)
adding = importlib.util.module_from_spec(specification)
specification.loader.exec_module(adding)


def test_the_papers_worked_example_has_target_0_825():
    """It marks three positions, against its own definition of two; the target is that of all three."""
    sequence = torch.tensor([[(0.5, 1), (-0.2, 0), (0.2, 1), (-0.8, 0), (0.6, 1)]])
    assert adding.targets(sequence).item() == pytest.approx(0.825)


def test_sequences_have_two_marks_and_numbers_from_minus_one_to_one(generator):
    numbers, marks = adding.draw(200, 50, generator).unbind(-1)
    assert (marks.sum(1) == 2).all()
    assert ((marks == 0) | (marks == 1)).all()
    assert numbers.abs().max() < 1
    assert numbers.min() < -0.98
    assert numbers.max() > 0.98
    assert marks.sum(0).min() > 0


def test_the_demo_shows_its_error_and_saves_a_model_that_loads(tmp_path, capsys):
    error = adding.main(["--length", "16", "--steps", "3", "--out", str(tmp_path / "run")])
    assert 0 <= error <= 100
    assert f"error {error:5.1f} %" in capsys.readouterr().out
    assert pm.Paramixer.from_pretrained(tmp_path / "run").config.length == 16


@pytest.mark.slow
def test_the_demo_learns_to_add(tmp_path):
    assert adding.main(["--length", "32", "--steps", "700", "--out", str(tmp_path / "run")]) < 1
