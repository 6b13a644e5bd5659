"""The estimators keep scikit-learn's manners, and learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import paramixer as pm
from paramixer.sklearn import ParamixerClassifier, ParamixerEmbedder, ParamixerRegressor

QUICK = {"epochs": 15, "channels": 8, "hidden": 8, "batch": 32, "learning_rate": 0.02}
EXPECTED: dict[str, str] = {}


@parametrize_with_checks(
    [ParamixerClassifier(**QUICK), ParamixerRegressor(**QUICK), ParamixerEmbedder(**QUICK)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_texts_and_sequences_of_any_length():
    texts = [("good " if n % 2 else "bad ") * (1 + n % 5) for n in range(60)]
    labels = ["pos" if n % 2 else "neg" for n in range(60)]
    found = pm.ParamixerClassifier(epochs=40).fit(texts, labels)
    assert found.score(texts, labels) > 0.95
    assert found.predict_proba(["good good"]).shape == (1, 2)
    assert found.predict(["good film", "a bad one"]).shape == (2,)
    signals = [np.sin(np.arange(10 + n) * (0.3 if n % 2 else 1.1)) for n in range(40)]
    values = [0.3 if n % 2 else 1.1 for n in range(40)]
    regressor = pm.ParamixerRegressor(epochs=60, pooling="mean").fit(signals, values)
    assert regressor.score(signals, values) > 0.8
    with pytest.raises(ValueError, match="fitted on numbers"):
        regressor.predict(["text"])


def test_inside_a_pipeline_and_cross_validation():
    X = np.random.default_rng(0).normal(size=(80, 12))
    y = (X[:, 3] + X[:, 8] > 0).astype(int)
    pipeline = make_pipeline(StandardScaler(), ParamixerClassifier(epochs=40, channels=16))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.7
    texts = ["GOOD", "BAD", "GOOD ONE", "BAD ONE"] * 10
    lower = FunctionTransformer(lambda samples: [sample.lower() for sample in samples])
    model = make_pipeline(lower, ParamixerClassifier(epochs=20)).fit(texts, [1, 0, 1, 0] * 10)
    assert model.predict(["Good"]).tolist() == [1]


def test_parameters_and_clones():
    estimator = ParamixerClassifier(channels=7)
    assert clone(estimator).get_params() == estimator.get_params()
    assert estimator.set_params(hidden=3).hidden == 3


def test_the_same_seed_gives_the_same_model():
    X = np.random.default_rng(1).normal(size=(40, 6))
    y = X[:, 0]
    one, two = (ParamixerRegressor(epochs=5, random_state=4).fit(X, y).predict(X) for _ in range(2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, ParamixerRegressor(epochs=5, random_state=5).fit(X, y).predict(X))


def test_arrays_of_vectors_are_sequences_too():
    X = np.random.default_rng(0).normal(size=(12, 7, 3))
    found = pm.ParamixerRegressor(epochs=2).fit(X, X[:, 0, 0])
    assert found.predict(X).shape == (12,)
    np.testing.assert_array_equal(found.predict(X), found.predict(list(X)))
    with pytest.raises(ValueError, match="2 numbers per position, but the estimator was fitted on 3"):
        found.predict(X[:, :, :2])


@pytest.mark.parametrize(
    ("estimator", "samples", "targets", "message"),
    [
        (pm.ParamixerClassifier(), [], [], "there is not a single sample"),
        (pm.ParamixerClassifier(), ["a", "b", "c"], ["x", None, "y"], "target 1 is None"),
        (pm.ParamixerRegressor(), ["a", "b", "c"], [1.0, 2.0, float("inf")], "target 2 is NaN or infinite"),
        (pm.ParamixerRegressor(), [[1.0], [1.0, 2.0]], [float("nan"), 2.0], "target 0 is NaN or infinite"),
    ],
)
def test_what_cannot_be_learned_from_is_named(estimator, samples, targets, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(samples, targets)


def test_any_random_state_of_scikit_learn_is_a_seed():
    X = np.random.default_rng(1).normal(size=(40, 6))

    def predict(random_state):
        return ParamixerRegressor(epochs=2, random_state=random_state).fit(X, X[:, 0]).predict(X)

    assert np.array_equal(predict(np.random.RandomState(3)), predict(np.random.RandomState(3)))
    assert np.array_equal(predict(4), predict(np.int64(4)))
    assert not np.array_equal(predict(None), predict(None))
    with pytest.raises(ValueError, match="cannot be used to seed"):
        predict("four")


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (0, "length=0; it must be at least 2, or None"),
        (-5, "length=-5; it must be at least 2, or None"),
        (2.5, "length=2.5; it must be a whole number, or None"),
        ("8", "length='8'; it must be a whole number, or None"),
    ],
)
def test_a_length_that_no_sequence_has_is_refused(length, message):
    with pytest.raises(ValueError) as caught:
        ParamixerClassifier(length=length).fit(["a", "b"] * 4, [0, 1] * 4)
    assert str(caught.value) == message


def test_one_text_is_no_list_of_samples():
    classifier = ParamixerClassifier(epochs=1).fit(["good", "bad"] * 4, [0, 1] * 4)
    for call in (classifier.predict, classifier.predict_proba, lambda text: classifier.fit(text, [0, 1, 0, 1])):
        with pytest.raises(ValueError, match="give a list of samples, not one text"):
            call("good")


@pytest.mark.parametrize("estimator", [ParamixerClassifier, ParamixerRegressor, ParamixerEmbedder])
def test_the_docstring_has_every_parameter(estimator):
    assert "SequenceEstimator" not in estimator.__doc__
    assert "What all estimators share" not in estimator.__doc__
    for name in estimator().get_params():
        assert f"\n    {name}: " in estimator.__doc__
