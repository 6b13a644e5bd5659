"""The default network beside n-grams on real texts and DNA, over three seeds."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pyarrow.parquet as pq
import pytest

from paramixer.training.runs.run import RunSettings, start_run

pytestmark = pytest.mark.slow
SEEDS = range(3)


def score(folder: Path, task: str, data: dict[str, object], **settings: object) -> float:
    """Train as the command line does, with the seed of the data, and return the metric on test."""
    outcome = start_run(RunSettings(task=task, data=data, seed=data["seed"], **settings), folder)
    return outcome.test[outcome.metric]


def test_the_default_network_is_above_ngrams_on_texts(shared_data, tmp_path):
    """On average: of 2 500 test reviews, the choice of the split moves either by half a point."""
    reviews = pq.read_table(shared_data / "imdb" / "imdb50k.parquet", columns=["text", "label"])
    ours, ngrams = [], []
    for seed in SEEDS:
        file = tmp_path / f"reviews-{seed}.parquet"
        # Every fourth review of the 50 000, which are sorted by label.
        pq.write_table(reviews.take(list(range(seed, len(reviews), 4))), file)
        data = {"length": 1000, "seed": seed, "test": 0.2}
        ours.append(score(tmp_path / f"ours-{seed}", str(file), data, training={"epochs": 2}))
        ngrams.append(score(tmp_path / f"ngrams-{seed}", str(file), data, system="ngrams"))
    assert fmean(ours) > fmean(ngrams) > 0.8


def test_the_default_network_is_above_kmers_on_dna(shared_data, tmp_path):
    for seed in SEEDS:
        data = {"source": str(shared_data / "genome"), "length": 16384, "windows": True, "seed": seed}
        ours = score(tmp_path / f"ours-{seed}", "genome", data, training={"epochs": 3})
        kmers = score(tmp_path / f"kmers-{seed}", "genome", data, system="ngrams")
        assert ours > kmers > 0.9
