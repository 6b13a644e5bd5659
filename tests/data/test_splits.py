"""Samples are assigned to splits once, by the source or by the seed, and shares that make no sense are refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paramixer.data.errors import DataError
from paramixer.data.splits import Shares, assign_splits, choose_sizes, parse_split

SIZES = {"train": 10, "validation": 2, "test": 3}


@pytest.mark.parametrize("share", [0, 1, -0.1, -1, 2, math.nan, math.inf, True, "0.1"])
@pytest.mark.parametrize("name", ["validation", "test"])
def test_a_share_that_is_no_share_is_named(name, share):
    with pytest.raises(DataError, match=f"^{name}={share}; it is a share of the samples, between 0 and 1$"):
        Shares(**{name: share})


def test_shares_that_leave_nothing_are_refused():
    with pytest.raises(DataError, match=r"validation=0.5 and test=0.5 leave nothing to train on"):
        Shares(validation=0.5, test=0.5)


@pytest.mark.parametrize("size", [0, -1, 1.5, math.nan, math.inf, True, "5"])
def test_a_number_of_sequences_that_is_none_is_named(size):
    with pytest.raises(DataError, match=rf"^test={size}; it must be a whole number of at least 1$"):
        choose_sizes({"train": None, "validation": 4.0, "test": size}, SIZES)
    assert choose_sizes({"train": None, "validation": 4.0, "test": None}, SIZES) == {**SIZES, "validation": 4}


def test_splits_have_the_names_that_sources_use():
    assert [parse_split(name, "line 1") for name in ("Train", "dev ", "VAL", "testing")] == [
        "train",
        "validation",
        "validation",
        "test",
    ]
    with pytest.raises(DataError, match="^line 1: split 'rest'; expected train, validation or test"):
        parse_split("rest", "line 1")


@given(
    count=st.integers(3, 300), seed=st.integers(0, 2**64), validation=st.floats(0.01, 0.4), test=st.floats(0.01, 0.4)
)
def test_every_split_has_its_share_and_at_least_one_sample(count, seed, validation, test):
    sizes = max(1, round(count * validation)), max(1, round(count * test))
    shares = Shares(validation=validation, test=test)
    if sum(sizes) >= count:
        with pytest.raises(DataError, match="none is left for train"):
            assign_splits([None] * count, [""] * count, shares, seed, "source")
        return
    splits = assign_splits([None] * count, [""] * count, shares, seed, "source")
    assert (splits.count("validation"), splits.count("test")) == sizes
    assert splits.count("train") == count - sum(sizes)
    assert splits == assign_splits([None] * count, [""] * count, shares, seed, "source")


@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    seed=st.integers(0, 2**64),
    validation=st.floats(0.01, 0.4),
    test=st.floats(0.01, 0.4),
)
def test_every_class_keeps_its_share_in_every_split(counts, seed, validation, test):
    classes = [str(label) for label, count in enumerate(counts) for _ in range(count)]
    total, shares = len(classes), Shares(validation=validation, test=test)
    sizes = {"validation": max(1, round(total * validation)), "test": max(1, round(total * test))}
    if total < 3 or sum(sizes.values()) >= total:
        return
    splits = assign_splits([None] * total, [""] * total, shares, seed, "source", classes)
    assert splits == assign_splits([None] * total, [""] * total, shares, seed, "source", classes)
    for label, count in enumerate(counts):
        found = [split for name, split in zip(classes, splits, strict=True) if name == str(label)]
        assert set(found) == {"train", "validation", "test"} if count > 2 else "train" in found
        for split, size in sizes.items():
            assert found.count(split) <= max(1, count * size / total + 1)
    if min(counts) > 2:
        for split, size in sizes.items():
            assert splits.count(split) < size + len(counts)


def test_validation_is_cut_from_every_class_of_train():
    named = ["test" if i % 4 == 0 else "train" for i in range(80)]
    classes = ["rare" if i % 20 == 1 else "common" for i in range(80)]
    splits = assign_splits(named, [""] * 80, Shares(validation=0.25), 0, "source", classes)
    assert [split == "test" for split in splits] == [name == "test" for name in named]
    cut = [label for label, split in zip(classes, splits, strict=True) if split == "validation"]
    assert (cut.count("rare"), cut.count("common")) == (1, 14)


@pytest.mark.parametrize("examples", [1, 2])
def test_classes_too_small_for_a_split_are_said_to_be(examples):
    classes = [str(number // examples) for number in range(30)]
    with pytest.raises(
        DataError, match=rf"30 sequences have {30 // examples} classes, too few of each for .*validation"
    ):
        assign_splits([None] * 30, [""] * 30, Shares(), 0, "a.csv", classes)
