"""What is learned, whatever the seed: by the paper's network, and by the default one with its one recipe."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import paramixer as pm
from paramixer.training.runs.run import RunSettings, start_run

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


def score(folder: Path, task: str, data: dict[str, object], seed: int, **settings: object) -> float:
    """Train as the command line does and return the metric on test."""
    outcome = start_run(RunSettings(task=task, data=data, seed=seed, **settings), folder)
    return outcome.test[outcome.metric]


@pytest.mark.slow
@each_seed
def test_the_default_network_is_above_ngrams_on_texts(shared_data, tmp_path, seed):
    reviews = pq.read_table(shared_data / "imdb" / "imdb50k.parquet", columns=["text", "label"])
    file = tmp_path / "reviews.parquet"
    # Every fourth review of the 50 000, which are sorted by label.
    pq.write_table(reviews.take(list(range(seed, len(reviews), 4))), file)
    data = {"length": 1000, "seed": seed, "test": 0.2}
    ours = score(tmp_path / "ours", str(file), data, seed, training={"epochs": 2})
    ngrams = score(tmp_path / "ngrams", str(file), data, seed, system="ngrams")
    assert ours > ngrams > 0.8
    assert sum(path.stat().st_size for path in (tmp_path / "ours" / "model").iterdir()) < 40e6


@pytest.mark.slow
@each_seed
def test_the_default_network_is_above_kmers_on_dna(shared_data, tmp_path, seed):
    data = {"source": str(shared_data / "genome"), "length": 16384, "windows": True, "seed": seed}
    ours = score(tmp_path / "ours", "genome", data, seed, training={"epochs": 3})
    kmers = score(tmp_path / "kmers", "genome", data, seed, system="ngrams")
    assert ours > kmers > 0.9
