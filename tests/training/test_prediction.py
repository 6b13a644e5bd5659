"""A trained model refuses what it cannot read."""

from __future__ import annotations

import pytest

import paramixer as pm
from paramixer.data.errors import DataError
from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.training.prediction import TrainedModel


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


@pytest.mark.parametrize("value", [1, None, ["a", "b"], [[1], [1, 2]]])
def test_what_is_no_sequence_for_a_model_of_numbers_is_named(numbers, value):
    with pytest.raises(DataError, match="input 0: .* is no sequence for this model, which reads 1 numbers per pos"):
        numbers.predict([value])
