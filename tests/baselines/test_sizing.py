"""Rivals of the same size."""

from __future__ import annotations

import pytest

import paramixer as pm
from paramixer.baselines import registry
from paramixer.cli import main
from paramixer.training.factory import config_for, parameters

BASELINES = [name for name, found in registry.BASELINES.items() if not found.linear]


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize(("task", "length"), [("order", 64), ("order", 300), ("adding", 128)])
def test_a_matched_rival_has_as_many_parameters(name, task, length):
    task = pm.data.load(task, length=length, train=4, validation=4, test=4)
    own = parameters(config_for(task, {}))
    rival = config_for(task, {"mixer": name}, match=True)
    assert parameters(rival) == pytest.approx(own, rel=0.03)
    assert rival.channels == 32


def test_authors_settings_are_the_presets():
    task = pm.data.load("order", length=64, train=4, validation=4, test=4)
    found = config_for(task, {"mixer": "performer"})
    assert (found.blocks, found.heads, found.hidden, found.channels) == (1, 1, 128, 32)
    assert config_for(task, {"mixer": "transformer"}).hidden == 32
    wider = config_for(task, {"mixer": "performer", "channels": 16, "heads": 2})
    assert (wider.hidden, wider.heads) == (64, 2)
    assert registry.baseline("transformer").authors["hfdna"] == {"blocks": 4, "heads": 4}


def test_models_lists_every_one(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["models", "--length", "64"]) == 0
    text = capsys.readouterr().out
    for name, rival in registry.BASELINES.items():
        assert name in text
        assert rival.title in text
    assert "log² N" in text
    assert main(["models", "--preset", "orden"]) == 2
    assert "did you mean 'order'" in capsys.readouterr().err


def test_models_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    real = registry.importlib.util.find_spec
    monkeypatch.setattr(registry.importlib.util, "find_spec", lambda name: None if name == "linformer" else real(name))
    assert main(["models", "--length", "16"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("linformer")]
    assert " no " in line
    assert main(["train", "order", "--model", "linformer"]) == 2
    assert "pip install 'paramixer[baselines]'" in capsys.readouterr().err
