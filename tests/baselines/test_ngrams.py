"""n-gram counts and a linear layer, against counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paramixer.baselines import registry
from paramixer.baselines.config import BaselineConfig
from paramixer.baselines.ngrams import Ngrams


def build(**fields: object) -> Ngrams:
    settings = {"length": 30, "vocabulary": 9, "outputs": 3, "model": "ngrams", "pad": 0}
    return registry.build(BaselineConfig(**settings | fields))


def test_counts_are_those_of_the_grams():
    sequences = [np.array([1, 2, 1, 2, 1]), np.array([3]), np.array([], np.int64), np.array([2, 1])]
    model = build(window=2)
    counts = model.weigh(model.count_ngrams(sequences)).toarray()
    # 1, 2, 12, 21 in the first; 3 in the second; none; 2, 1, 21.
    for row, expected in zip(counts, ([3, 2, 2, 2], [1], [], [1, 1, 1]), strict=True):
        logs = np.log1p(np.array(sorted(expected), float))
        np.testing.assert_allclose(np.sort(row[row > 0]), logs / max(1e-6, np.linalg.norm(logs)), rtol=1e-6)
    # The last one's grams are all in the first.
    assert ((counts[3] > 0) <= (counts[0] > 0)).all()


def test_answers_do_not_depend_on_padding_or_batch():
    model = build()
    model.set_weights(np.random.default_rng(0).normal(size=(3, model.columns)), np.arange(3.0))
    tokens, lengths = torch.randint(1, 9, (4, 20)), torch.tensor([20, 7, 1, 13])
    padded = tokens.clone()
    for row, length in enumerate(lengths):
        padded[row, length:] = 0
    together = model(padded)
    torch.testing.assert_close(model(tokens, lengths), together, rtol=0, atol=0)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(model(tokens[row : row + 1, :length])[0], together[row])


def test_rare_grams_count_more():
    sequences = [np.array([1, 2]), np.array([1, 3]), np.array([1, 2])]
    model = build(window=1)
    counts = model.count_ngrams(sequences)
    model.learn_rarity(counts)
    first = model.weigh(counts).toarray()[0]
    # Four sequences over those that have it and one: 1 is in all three, 2 in two.
    expected = np.array([1 + np.log(4 / 4), 1 + np.log(4 / 3)])
    np.testing.assert_allclose(np.sort(first[first > 0]), expected / np.linalg.norm(expected), rtol=1e-6)


@pytest.mark.parametrize("fields", [{"vocabulary": None, "features": 2, "pad": None}, {"target": "value"}], ids=str)
def test_it_refuses_what_it_cannot_count(fields):
    with pytest.raises(ValueError, match="tokens that have classes"):
        build(**fields)


def test_saved_and_loaded_it_answers_the_same(tmp_path):
    model = build(rank=64)
    model.set_weights(np.random.default_rng(0).normal(size=(3, 64)), np.arange(3.0))
    model.learn_rarity(model.count_ngrams([np.array([1, 2, 3]), np.array([1, 2])]))
    model.save_pretrained(tmp_path)
    tokens = torch.randint(1, 9, (4, 20))
    loaded = registry.load_pretrained(tmp_path)
    assert loaded.config == model.config
    assert torch.equal(loaded(tokens), model(tokens))
