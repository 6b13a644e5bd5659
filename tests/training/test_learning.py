"""The synthetic tasks are learned, whatever the seed."""

from __future__ import annotations

import pytest
import torch

import paramixer as pm
from paramixer.training.factory import config_for


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "steps", "rate", "most"), [("adding", 2000, 0.005, 0.005), ("order", 3000, 0.01, 0.02)]
)
def test_learned_at_256(name, steps, rate, most, seed, tmp_path):
    task = pm.data.load(name, length=256, seed=seed, validation=1000, test=1000)
    model = pm.Paramixer(config_for(task, {"init": "identity"}), generator=torch.Generator().manual_seed(seed))
    options = pm.TrainingOptions(
        steps=steps, learning_rate=rate, schedule="cosine", warmup=200, evaluate_every=200, until="error=0"
    )
    assert options.resolved(pm.recipe(name)).batch == 40
    outcome = pm.fit(model, task, options, folder=tmp_path, seed=seed)
    assert outcome.test["error"] <= most
