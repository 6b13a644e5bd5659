"""From samples to prepared data: splits, classes, vocabulary, and notes for the user."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paramixer.data.errors import DataError
from paramixer.data.preparation import choose_length, write_samples
from paramixer.data.samples import Sample
from paramixer.data.splits import Shares
from paramixer.data.storage.prepared import prepare
from paramixer.data.vocabulary import CLS, PAD, UNKNOWN, Vocabulary


def _load(samples, *, read=None, length=None, seed=0, shares=None, tag=0, **options):
    """A task of these samples."""
    return prepare(
        "t",
        {"samples": repr(samples), "length": length, "seed": seed, "options": repr(options), "tag": tag},
        lambda preparation: write_samples(
            preparation,
            read or (lambda: iter(samples)),
            source="the source",
            name="t",
            preset="text",
            length=length,
            seed=seed,
            settings={},
            shares=shares or Shares(),
            **options,
        ),
    )


def _texts(count, split=None):
    return [Sample(f"text {i}", "ab"[i % 2], f"line {i}", split, f"id{i}") for i in range(count)]


def _split_texts():
    return [
        *[sample._replace(split="train") for sample in _texts(10)],
        *[sample._replace(sequence=f"held {i}", split="test") for i, sample in enumerate(_texts(4))],
    ]


def _ids(found):
    return {name: [split.id(i) for i in range(len(split))] for name, split in found.splits.items()}


def test_every_sample_is_in_one_split_and_comes_back_as_it_was():
    samples = _texts(50)
    found = _load(samples, cls=True)
    assert {name: len(split) for name, split in found.splits.items()} == {"train": 40, "validation": 5, "test": 5}
    by_id = {sample.id: sample for sample in samples}
    assert sorted(id for ids in _ids(found).values() for id in ids) == sorted(by_id)
    for split in found.splits.values():
        for index in range(len(split)):
            sample = by_id[split.id(index)]
            inputs, target = split[index]
            symbols = [found.vocabulary.symbols[number] for number in inputs]
            assert symbols[0] == CLS
            assert "".join(symbols[1:]) == sample.sequence
            assert found.classes[target] == sample.target
    assert found.length == max(len(sample.sequence) for sample in samples) + 1


def test_the_cut_follows_from_the_seed_alone():
    first, again, other = (_load(_texts(50), seed=seed, tag=tag) for seed, tag in ((1, 0), (1, 1), (2, 0)))
    assert first.train.path != again.train.path
    assert _ids(first) == _ids(again)
    assert _ids(first) != _ids(other)
    assert first.fingerprint == again.fingerprint


def test_splits_of_the_source_are_kept_and_validation_is_cut_from_train_only():
    found = _load(_split_texts())
    assert _ids(found)["test"] == ["id0", "id1", "id2", "id3"]
    assert len(found.validation) == 1
    assert sorted(_ids(found)["train"] + _ids(found)["validation"]) == sorted(f"id{i}" for i in range(10))


def test_a_validation_split_of_the_source_is_kept():
    samples = [*_split_texts(), Sample("text", "a", "line", "validation", "v")]
    found = _load(samples)
    assert _ids(found)["validation"] == ["v"]
    assert len(found.train) == 10


def test_the_vocabulary_knows_the_characters_of_train_only():
    samples = [*_split_texts(), Sample("te%t", "a", "line 99", "test"), Sample("t&", "a", "line 98", "validation")]
    found = _load(samples)
    assert found.vocabulary.symbols == (PAD, UNKNOWN, *sorted(set("text 0123456789")))
    assert found.test[4].inputs.tolist()[2] == found.vocabulary.unknown
    assert "5 of the 5 test sequences have symbols that are not in the vocabulary" in found.notes
    assert "1 of the 1 validation sequences have symbols that are not in the vocabulary" in found.notes


def test_an_unknown_letter_is_refused_in_strict_mode():
    samples = [
        *_split_texts()[:10],
        Sample("text", "a", "line 10", "validation"),
        Sample("next", "a", "line 11", "test"),
    ]
    with pytest.raises(DataError, match="^line 11: 'n' at position 0 is not in the vocabulary"):
        _load(samples, strict=True)
    found = _load([*samples[:-1], samples[-1]._replace(sequence="text")], strict=True, cls=True)
    assert found.vocabulary.symbols[:3] == (PAD, CLS, " ")
    assert found.vocabulary.unknown is None


def test_texts_are_cut_to_n_and_their_full_length_is_kept():
    found = _load([sample._replace(sequence=f"{i:07}") for i, sample in enumerate(_texts(20))], length=4, cls=True)
    assert found.length == 4
    assert found.train.lengths.tolist() == [4] * 16
    assert found.train.full_lengths.tolist() == [8] * 16


def test_n_is_the_longest_sequence_but_no_more_than_the_limit():
    samples = [sample._replace(sequence="x" * (10 + i) + str(i)) for i, sample in enumerate(_texts(9))]
    assert _load(samples).length == 19
    assert _load(samples, cls=True).length == 20
    assert _load(samples, cls=True, longest=15).length == 15


def test_words_are_counted_as_words():
    vocabulary = Vocabulary(symbols=(PAD, "one", "two"), unit="word")
    samples = [sample._replace(sequence="one two " * (1 + i)) for i, sample in enumerate(_texts(5))]
    found = _load(samples, vocabulary=vocabulary)
    assert found.length == 10
    assert sorted(length for split in found.splits.values() for length in split.full_lengths) == [2, 4, 6, 8, 10]
    with pytest.raises(DataError, match="line 0: a sequence of length 0"):
        _load([samples[0]._replace(sequence="  "), *samples[1:]], vocabulary=vocabulary)


def test_numbers_keep_their_features():
    samples = [Sample(np.full((3 + i, 2), i), float(i % 2), f"row {i}") for i in range(10)]
    found = _load(samples)
    assert (found.features, found.vocabulary, found.length, found.classes) == (2, None, 12, ("0", "1"))
    inputs, _ = found.train[0]
    assert inputs.dtype == torch.float32
    assert inputs.shape == (3 + int(inputs[0, 0]), 2)


def test_token_ids_are_kept_where_the_vocabulary_is_of_numbers():
    vocabulary = Vocabulary(symbols=tuple(map(str, range(10))), unit="number")
    samples = [Sample(np.array([i, 9]), i % 2, f"row {i}") for i in range(10)]
    found = _load(samples, vocabulary=vocabulary)
    assert found.features is None
    assert found.train[0].inputs.dtype == torch.int64
    assert found.train.targets.tolist() == [int(item[0]) % 2 for item, _ in (found.train[i] for i in range(8))]
    with pytest.raises(DataError, match="row 3: a token id that is not 0 to 9"):
        _load([*samples[:3], Sample(np.array([10]), 0, "row 3")], vocabulary=vocabulary)


@pytest.mark.parametrize(
    ("targets", "kind", "classes"),
    [
        (["b", "a"], "class", ("a", "b")),
        (["10", "9"], "class", ("9", "10")),
        ([1, 0.0], "class", ("0", "1")),
        (["10", "x", "9", "nan"], "class", ("9", "10", "nan", "x")),
        (["0.5", "1"], "value", ()),
        ([0.5, 1], "value", ()),
        (list(range(50)), "class", tuple(map(str, range(50)))),
        (list(range(51)), "value", ()),
    ],
)
def test_classes_and_values_are_told_from_the_targets(targets, kind, classes):
    samples = [Sample(f"t{i}", targets[i % len(targets)], f"line {i}") for i in range(len(targets) * 100)]
    found = _load(samples)
    assert (found.target, found.classes) == (kind, classes)
    assert found.metric == ("accuracy" if kind == "class" else "mse")
    assert found.outputs == max(1, len(classes))


def test_the_target_can_be_said():
    samples = [Sample(f"t{i}", i % 3, f"line {i}") for i in range(60)]
    found = _load(samples, target="value")
    assert found.train[0].target.dtype == torch.float32
    assert sorted(set(found.train.targets.tolist())) == [0, 1, 2]
    assert _load([sample._replace(target=sample.target / 2) for sample in samples], target="class").classes == (
        "0",
        "0.5",
        "1",
    )


def test_given_classes_keep_their_order_and_are_all_there_are():
    assert _load(_texts(30), classes=("b", "a")).classes == ("b", "a")
    with pytest.raises(DataError, match="line 0: label 'a'; there are b, c"):
        _load(_texts(30), classes=("b", "c"))


def _with(place, **changes):
    samples = _texts(30)
    samples[place] = samples[place]._replace(**changes)
    return samples


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        ([], {}, "the source: there is not a single sequence in it"),
        (_texts(2), {}, "the source: only 2 sequences; train, validation and test need one each"),
        (_with(7, sequence=""), {}, "line 7: a sequence of length 0"),
        (_with(7, target=" "), {}, "line 7: the label is empty"),
        (_with(7, target=float("nan")), {}, "line 7: the target is NaN or infinite"),
        (_with(7, split="train"), {}, "line 0: some samples name their split and some do not"),
        (_with(7, split="rest"), {}, "line 7: a split 'rest'; there are train, validation, test"),
        (_with(7, sequence=np.ones(3)), {}, "line 7: 1 numbers per position, where others have none"),
        (_with(7, target="new"), {"target": "value"}, "line 0: the target 'a' is not a number"),
        (_texts(30)[::2], {}, "the source: all targets are 'a'; there is nothing to learn"),
        (_texts(9, "train"), {}, "the source: no sequence is in the test split; name some test, or"),
        (_texts(9, "test"), {}, "the source: no sequence is in the train split"),
        ([*_texts(1, "train"), *_texts(9, "test")], {}, "the source: only 1 training sequences; validation is cut"),
        ([*_split_texts(), Sample("t", "c", "line 77", "test")], {}, "line 77: label 'c' is only in test"),
    ],
)
def test_bad_samples_have_one_clear_message(samples, options, message):
    with pytest.raises(DataError) as caught:
        _load(samples, **options)
    assert str(caught.value).startswith(message)


def _numbers(place, value):
    found = [Sample(np.full((4, 2), 0.5 * i), "ab"[i % 2], f"row {i}") for i in range(20)]
    found[place].sequence[2, 1] = value
    return found


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_a_number_that_float32_cannot_hold_names_its_row_and_position(value):
    with pytest.raises(DataError, match="row 5: number 3 of the sequence is NaN, infinite or too large for float32"):
        _load(_numbers(5, value))


@pytest.mark.parametrize("value", ["nan", "inf", "1e39", 1e39])
def test_a_value_that_float32_cannot_hold_names_its_row(value):
    samples = [Sample(f"t{i}", value if i == 5 else 0.5 + i, f"line {i}") for i in range(20)]
    with pytest.raises(DataError, match="^line 5: the target .* is NaN, infinite or too large for float32"):
        _load(samples)


def test_values_that_float32_would_round_are_refused():
    """Unix times half a second apart are one number there."""
    samples = [Sample(f"t{i}", 1.7e9 + i / 2, f"line {i}") for i in range(20)]
    with pytest.raises(
        DataError, match="^line 19: the targets, from 1700000000 to 1700000009.5, are too close .* subtract"
    ):
        _load(samples)
    _load([Sample(f"t{i}", 1000 + i / 2, f"line {i}") for i in range(20)])


def test_features_that_differ_name_the_row():
    samples = _numbers(0, 1)
    samples[9] = samples[9]._replace(sequence=np.ones((3, 1)))
    with pytest.raises(DataError, match="row 9: 1 numbers per position, where others have 2"):
        _load(samples)


def test_sequences_that_stand_twice_are_counted():
    samples = [
        *[Sample(text, "ab"[i % 2], f"line {i}", "train") for i, text in enumerate(["t1", "t2", "t2", "t3"])],
        Sample("t1", "a", "line 5", "validation"),
        *[Sample(text, "a", "line 6", "test") for text in ("t3", "t1", "other1")],
    ]
    notes = _load(samples).notes
    assert notes[:3] == (
        "1 of the 1 validation sequences also stand in train",
        "2 of the 3 test sequences also stand in train or validation",
        "1 training sequences stand in train more than once",
    )


@pytest.mark.parametrize("change", [-1, 1])
def test_a_source_that_changes_while_it_is_read_is_an_error(change):
    readings = [_texts(30), _texts(30 + change)]
    with pytest.raises(DataError, match="the source: it changed while it was read"):
        _load([], read=lambda: readings.pop(0))


def test_shares_that_round_to_everything_are_refused():
    with pytest.raises(DataError, match="only 4 sequences, and none is left for train"):
        _load(_texts(4), shares=Shares(validation=0.49, test=0.49))


def test_shares_are_of_all_samples():
    found = _load(_texts(200), shares=Shares(validation=0.25, test=0.5))
    assert [len(split) for split in found.splits.values()] == [50, 50, 100]


@pytest.mark.parametrize(
    ("lengths", "chosen"),
    [
        ([10] * 50 + [20], 20),
        ([100] * 990 + [5000] * 10, 128),
        ([2000] * 990 + [50_000] * 10, 2048),
        ([2000] * 990 + [2900] * 10, 2900),
        ([30_000] * 5, 16_384),
        ([1], 2),
    ],
)
def test_a_few_outliers_do_not_decide_the_length(lengths, chosen):
    assert choose_length(np.array(lengths), 16_384, spare_outliers=True) == chosen
    assert choose_length(np.array(lengths)) == max(2, *lengths, 2)
