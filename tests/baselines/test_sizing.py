"""Baselines of the same size, and with the settings of the paper's authors."""

from __future__ import annotations

import pytest
import torch

import paramixer as pm
from paramixer.baselines import registry

BASELINES = [name for name, baseline in registry.BASELINES.items() if not baseline.closed_form]


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize(("preset", "length"), [("order", 64), ("order", 300), ("adding", 128)])
def test_a_matched_baseline_has_as_many_parameters(name, preset, length):
    base = pm.preset(preset, length=length)
    with torch.device("meta"):
        parameters = sum(parameter.numel() for parameter in pm.Paramixer(base, init=None).parameters())
    config = registry.match_parameters(registry.configure(name, base, preset, {}), parameters)
    assert registry.count_parameters(config) == pytest.approx(parameters, rel=0.03)
    assert config.channels == 32


def test_settings_are_those_of_the_papers_authors():
    base = pm.preset("order", length=64)
    performer = registry.configure("performer", base, "order", {})
    assert (performer.blocks, performer.heads, performer.hidden, performer.channels) == (1, 1, 128, 32)
    assert (performer.length, performer.vocabulary, performer.pooling) == (64, 6, "flat")
    assert registry.configure("transformer", base, "order", {}).hidden == 32
    narrow = registry.configure("performer", base, "order", {"channels": 16, "heads": 2})
    assert (narrow.hidden, narrow.heads) == (64, 2)
    genome = registry.configure("transformer", pm.preset("hfdna", length=64), "hfdna", {})
    assert (genome.blocks, genome.heads) == (4, 4)


def test_ngrams_cannot_be_matched():
    config = registry.configure("ngrams", pm.preset("order", length=64), "order", {})
    with pytest.raises(ValueError, match="ngrams has as many parameters as columns; it cannot be matched"):
        registry.match_parameters(config, 1000)
