"""The size of the default network follows from the number and the length of the sequences, by a printed rule."""

from __future__ import annotations

import dataclasses

import pytest

import paramixer as pm
from paramixer.training.sizing import choose_size, choose_window, describe_size


@pytest.mark.parametrize(("length", "window"), [(2, 1), (255, 1), (256, 4), (2048, 4), (4096, 8), (16384, 32)])
def test_windows_leave_at_most_512_positions(length, window):
    assert choose_window(length) == window


@pytest.mark.parametrize(("sequences", "channels", "blocks"), [(40, 32, 1), (1000, 64, 2), (20_000, 64, 3)])
def test_more_sequences_make_a_wider_and_deeper_network(sequences, channels, blocks):
    task = pm.data.load("order", length=16, train=sequences, validation=4, test=4)
    size = choose_size(task)
    assert (size.model["channels"], size.model["blocks"]) == (channels, blocks)
    assert size.training["batch"] == min(32, max(4, sequences // 20))


def test_long_sequences_make_small_batches():
    task = pm.data.load("order", length=2**14, train=4000, validation=4, test=4)
    assert choose_size(task).training["batch"] * 2**14 == 2**17


def test_little_data_gets_more_epochs():
    few, many = (pm.data.load("order", length=16, train=n, validation=4, test=4) for n in (100, 10_000))
    assert choose_size(few).training["epochs"] > choose_size(many).training["epochs"] == 10


@pytest.mark.parametrize(("sequences", "rows"), [(10, 2**12), (2047, 2**15), (2100, 2**16), (100_000, 2**18)])
def test_tables_of_ngrams_grow_with_the_data(sequences, rows):
    task = pm.data.load("order", length=16, train=sequences, validation=4, test=4)
    assert choose_size(task).model["ngram_rows"] == rows


def test_the_stem_follows_from_the_vocabulary():
    assert choose_size(pm.data.load("order", length=16, train=40, validation=4, test=4)).model["ngrams"] > 1
    adding = choose_size(pm.data.load("adding", length=16, train=40, validation=4, test=4)).model
    assert not {"ngrams", "ordered_ids"} & adding.keys()


def test_what_was_chosen_is_printed_with_the_settings_that_change_it():
    task = pm.data.load("order", length=1024, train=2000, validation=4, test=4)
    resolved = pm.resolve(task)
    line = describe_size(task, resolved.config, resolved.training)
    for part in ("2 layers of 64 channels", "windows of 4 positions", "batch 32", "2,000 sequences", "model.blocks"):
        assert part in line
    given = dataclasses.replace(resolved.config, blocks=5)
    assert "5 layers" in describe_size(task, given, resolved.training)
