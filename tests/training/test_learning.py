"""The synthetic tasks are learned, whatever the seed, by both networks."""

from __future__ import annotations

import pytest

import paramixer as pm

each_seed = pytest.mark.parametrize("seed", [0, 1, 2])


@pytest.mark.slow
@each_seed
@pytest.mark.parametrize(
    ("name", "steps", "rate", "most"), [("adding", 2000, 0.005, 0.005), ("order", 3000, 0.01, 0.02)]
)
def test_the_papers_network_learns_at_256(name, steps, rate, most, seed):
    task = pm.data.load(name, length=256, seed=seed, validation=1000, test=1000)
    resolved = pm.resolve(task, recipe="paper", init={"name": "identity"})
    model = pm.build_model(task, resolved, seed)
    options = pm.TrainingOptions(
        steps=steps, learning_rate=rate, schedule="cosine", warmup=200, evaluate_every=200, until="error=0"
    )
    assert resolved.training.batch == 40
    assert pm.fit(model, task, options, seed=seed).test["error"] <= most


@pytest.mark.slow
@each_seed
@pytest.mark.parametrize("name", ["adding", "order"])
def test_the_default_network_learns_at_256_without_a_setting(name, seed):
    task = pm.data.load(name, length=256, seed=seed, validation=1000, test=2000)
    resolved = pm.resolve(task, training={"steps": 1500})
    model = pm.build_model(task, resolved, seed)
    assert pm.fit(model, task, resolved, seed=seed).test["error"] < 0.01
