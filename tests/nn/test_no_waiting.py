"""A step of a network starts its kernels on a GPU and reads nothing back: the device "meta" stands in for one."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import paramixer as pm
from meta_device import ForbidWaiting

NETWORKS = {
    "default, symbols": {"vocabulary": 10, "window": 4, "head_dropout": 0.1, "block_dropout": 0.1},
    "default, numbers": {"features": 3, "embedding_dropout": 0.1},
    "paper, symbols": {"layer": "paper", "hidden": 32, "vocabulary": 10, "padding": "symbol", "pooling": "flat"},
    "paper, lengths": {"layer": "paper", "hidden": 32, "vocabulary": 10, "padding": "length", "pooling": "flat"},
    "paper, numbers": {"layer": "paper", "hidden": 32, "features": 2, "padding": "length", "pooling": "flat"},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_training_step_never_waits_for_the_device(name):
    settings = {"channels": 32, "pad": 0 if NETWORKS[name].get("padding") == "symbol" else None, **NETWORKS[name]}
    model = pm.Paramixer(pm.ParamixerConfig(length=100, outputs=2, target="class", **settings)).to("meta")
    tokens = "vocabulary" in settings
    inputs = torch.zeros((4, 100) if tokens else (4, 100, settings["features"]), device="meta")
    inputs = inputs.long() if tokens else inputs
    lengths, targets = torch.zeros(2, 4, dtype=torch.int64, device="meta")
    counts = lengths if model.config.padding == "length" else None
    with ForbidWaiting():
        F.cross_entropy(model(inputs, counts), targets).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_n_grams_are_read_without_waiting():
    """The gradient of their table waits, since the number of its rows is not known before."""
    config = pm.ParamixerConfig(length=100, outputs=2, vocabulary=10, target="class", ngrams=3, ngram_rows=4096)
    model = pm.Paramixer(config).to("meta")
    inputs, lengths = torch.zeros(4, 100, device="meta").long(), torch.zeros(4, device="meta").long()
    with ForbidWaiting(), torch.no_grad():
        assert model(inputs, lengths).shape == (4, 2)
