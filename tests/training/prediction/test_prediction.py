"""A trained model refuses what it cannot read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import paramixer as pm
from paramixer.data.errors import DataError
from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.training.batches import Batch
from paramixer.training.prediction.raw_inputs import InputSummary, RawInput, read_inputs, split_windows
from paramixer.training.prediction.trained_model import TrainedModel, call_features


@pytest.fixture
def texts() -> TrainedModel:
    vocabulary = Vocabulary.from_characters(["a good film"])
    info = TaskInfo(
        name="own",
        preset="text",
        metric="accuracy",
        target="class",
        length=8,
        classes=("x", "y"),
        vocabulary=vocabulary,
    )
    config = pm.ParamixerConfig(layer="paper", length=8, vocabulary=len(vocabulary), outputs=2, channels=4, hidden=4)
    return TrainedModel(pm.Paramixer(config).eval(), info)


@pytest.fixture
def numbers() -> TrainedModel:
    info = TaskInfo(name="own", preset="adding", metric="mse", target="value", length=8, features=1)
    return TrainedModel(
        pm.Paramixer(pm.ParamixerConfig(layer="paper", length=8, features=1, outputs=1, channels=4)).eval(), info
    )


def test_one_text_is_no_list_of_inputs(texts):
    for text in ("a good film", b"a good film"):
        with pytest.raises(ValueError, match="give a list of samples, not one text"):
            texts.predict(text)


@pytest.mark.parametrize("value", [1, 2.5, None, ["a", "b"], [[1], [1, 2]], {"text": "a"}])
def test_what_is_no_sequence_for_a_model_of_texts_is_named(texts, value):
    with pytest.raises(DataError, match="input 1: .* which reads texts, or lists of token ids below 12$") as caught:
        texts.predict(["a" * 8, value])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [[0.3] * 8, [3] * 7 + [12], [-1] * 8, [[1, 2]] * 4])
def test_numbers_are_no_texts(texts, value):
    """Fractions were once cut to token ids without a word."""
    with pytest.raises(
        DataError, match="^input 0: numbers, but the model reads texts, or lists of token ids below 12$"
    ):
        texts.predict([value])


@pytest.mark.parametrize("value", [1, None, ["a", "b"], [[1], [1, 2]]])
def test_what_is_no_sequence_for_a_model_of_numbers_is_named(numbers, value):
    with pytest.raises(DataError, match="input 0: .* is no sequence for this model, which reads 1 numbers per pos"):
        numbers.predict([value])


def test_columns_of_any_library_have_the_same_answers(texts):
    samples = ["a good film", "film", "aaa"]
    expected = texts.predict_proba(samples)
    assert expected.shape == (3, 2)
    np.testing.assert_allclose(expected.sum(1), 1)
    columns = (
        pd.Series(samples, dtype="string"),
        pd.DataFrame({"text": samples}),
        pl.Series(samples),
        pa.chunked_array([samples[:1], samples[1:]]),
        np.array(samples, object),
        iter(samples),
    )
    for column in columns:
        np.testing.assert_array_equal(texts.predict_proba(column), expected)


def test_features_are_what_the_model_says(texts):
    features = texts.features(["a film!"])
    tokens = torch.from_numpy(texts.info.vocabulary.encode("a film!"))[None]
    np.testing.assert_allclose(features, call_features(texts.model, Batch(tokens, None, tokens)).detach().numpy())


def test_cut_inputs_and_unknown_symbols_are_counted(texts):
    texts.predict(["film", "a good film", "x?"])
    summary = texts.last_inputs
    assert (summary.inputs, summary.cut, summary.unknown, summary.with_unknown) == (3, 1, 2, 1)
    assert summary.describe() == [
        "1 of 3 inputs is longer than 8 and was cut; windows=True reads them whole",
        "2 of 13 symbols were unknown to the model, in 1 of 3 inputs",
    ]
    texts.predict(["a good film"], windows=True)
    assert (texts.last_inputs.cut, texts.last_inputs.windowed) == (0, 1)


@pytest.mark.parametrize(
    ("samples", "line"),
    [
        (["film", "", "a film", " "], "2 of 4 inputs are empty, which says nothing about their class or value: 1, 3"),
        ([""] * 7, "7 of 7 inputs are empty, which says nothing about their class or value: 0, 1, 2, 3, 4 and 2 more"),
        (["film"], None),
    ],
)
def test_empty_inputs_are_counted(texts, samples, line):
    """A model has an answer even to nothing; a user must hear of it."""
    summary = InputSummary(texts.info.length)
    raw = [RawInput("", sample, f"a file, {number}") for number, sample in enumerate(samples)]
    assert len(list(read_inputs(raw, texts.info, summary))) == len(samples)
    assert summary.describe() == ([] if line is None else [line])


def test_windows_are_averaged(texts):
    whole = texts.predict_proba(["a good film"], windows=True)
    parts = np.log(texts.predict_proba(["a good ", "od film"]))
    mean = np.exp(parts.mean(0))
    np.testing.assert_allclose(whole[0], mean / mean.sum(), atol=1e-6)


@given(size=st.integers(1, 60), length=st.integers(2, 20), first=st.integers(0, 1))
def test_windows_cover_everything_and_have_one_length(size, length, first):
    body = np.arange(1, size + 1)
    windows = split_windows(np.concatenate([np.zeros(first, np.int64), body]), length, first)
    assert set(np.concatenate(windows)) - {0} == set(body)
    assert {len(window) for window in windows} == {min(length, size + first)}
    assert len(windows) == -(-size // (length - first))


def test_a_model_of_values_has_no_probabilities(numbers):
    with pytest.raises(ValueError, match="predicts a value and has no probabilities; use predict"):
        numbers.predict_proba([[1.0, 2.0]])
