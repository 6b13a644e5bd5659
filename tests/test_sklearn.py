"""The estimators keep scikit-learn's manners, and learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import paramixer as pm
from paramixer.sklearn import ParamixerClassifier, ParamixerEmbedder, ParamixerRegressor
from paramixer.sklearn.weighting import hold_out, select_samples

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
        (pm.ParamixerClassifier(), ["a", "b"], ["x", "x"], "^there is only one class, 'x'; a"),
        (pm.ParamixerClassifier(), ["a", np.float64(3)], [0, 1], "^sample 1 is 3.0, not a text"),
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


SMALL = {"epochs": 2, "channels": 8, "hidden": 8}
TEXTS, LABELS = ["good film", "bad film", "good one", "bad one"] * 6, ["pos", "neg"] * 12


def test_columns_of_any_library_are_samples():
    classifier = ParamixerClassifier(**SMALL).fit(TEXTS, LABELS)
    expected = classifier.predict_proba(TEXTS[:3])
    frame = pd.DataFrame({"text": TEXTS, "label": LABELS})
    again = ParamixerClassifier(**SMALL).fit(frame[["text"]], frame["label"])
    for column in (pd.Series(TEXTS, dtype="string"), pa.table({"t": TEXTS}), pl.Series(TEXTS), np.array(TEXTS, object)):
        np.testing.assert_array_equal(again.predict_proba(column)[:3], expected)
    with pytest.raises(ValueError, match="a table of 2 columns, with texts in 'text'; give one column"):
        classifier.predict(frame)


@pytest.mark.parametrize(
    ("samples", "row"), [(["a", None], 1), (["a", float("nan")], 1), (pd.Series([pd.NA, "a"], dtype="string"), 0)]
)
def test_a_missing_sample_is_named_by_its_row(samples, row):
    with pytest.raises(ValueError, match=f"sample {row} is .*, a missing value"):
        ParamixerClassifier().fit(samples, [0, 1])


_TABLE = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, float("nan"), 9.0], [1.0, 2.0, 2.0]]
_FRAME = pd.DataFrame(_TABLE, columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("samples", "where"),
    [
        (_TABLE, "sample 2 holds NaN or infinity at position 1"),
        (np.array(_TABLE), "sample 2 holds NaN or infinity at position 1"),
        (np.array(_TABLE)[:, :, None], "sample 2 holds NaN or infinity at position 1"),
        (_FRAME, "sample 2 holds NaN or infinity in column 'b'"),
        (_FRAME.astype("Float64"), "sample 2 holds NaN or infinity in column 'b'"),
        (_FRAME.set_index(pd.Index(list("wxyz"))), r"sample 2 \(index 'y'\) holds NaN or infinity in column 'b'"),
        (pl.DataFrame(_FRAME.to_dict("list")), "sample 2 holds NaN or infinity in column 'b'"),
        ([[1.0, 2.0], [3.0, None], [5.0, 6.0], [1.0, 1.0]], "sample 1 holds NaN or infinity at position 1"),
    ],
)
def test_a_missing_number_is_named_by_row_and_column(samples, where):
    with pytest.raises(ValueError, match=f"^{where}; fill it, or leave"):
        ParamixerClassifier(epochs=1).fit(samples, [0, 1, 0, 1])


def test_a_missing_number_is_named_in_new_samples_too():
    regressor = ParamixerRegressor(epochs=1).fit(np.ones((4, 3)) * np.arange(4)[:, None], np.arange(4.0))
    with pytest.raises(ValueError, match="^sample 2 holds NaN or infinity at position 1"):
        regressor.predict(_TABLE)


def test_samples_that_are_cut_are_counted_in_a_warning():
    texts, labels = ["good film" + " and more" * 9] * 3 + ["bad"] * 3, [1, 1, 1, 0, 0, 0]
    with pytest.warns(UserWarning, match="^3 of 6 samples are longer than 9, .* fit one with length=91$") as caught:
        classifier = ParamixerClassifier(**SMALL, length=10).fit(texts, labels, sample_weight=[2.0] * 6)
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="^1 of 2 samples is longer than 9, "):
        classifier.predict(texts[2:4])
    # No warning, which would be an error here.
    whole = ParamixerClassifier(**SMALL, length=91).fit(texts, labels)
    assert len(whole.predict(texts)) == 6


def test_a_sample_has_the_same_answer_whoever_comes_along():
    signals = [np.sin(np.arange(10 + n % 5)) for n in range(30)]
    regressor = ParamixerRegressor(**SMALL).fit(signals, np.arange(30.0))
    together = regressor.predict(signals)
    np.testing.assert_array_equal(regressor.predict([signals[3]]), together[3:4])
    np.testing.assert_array_equal(regressor.predict(np.stack([signals[0], signals[5]])), together[[0, 5]])
    with pytest.raises(ValueError, match="give a list of samples, not one sequence"):
        regressor.predict(signals[0])


def test_fit_goes_on_with_a_warm_start_and_tells_how_it_went():
    classifier = ParamixerClassifier(**SMALL, warm_start=True, baseline=True).fit(TEXTS, LABELS)
    model = classifier.model_
    assert classifier.fit(TEXTS, LABELS).model_ is model
    assert classifier.n_iter_ == 2
    assert len(classifier.loss_curve_) == len(classifier.validation_scores_) > 0
    assert 0 <= classifier.baseline_score_ <= 1
    with pytest.raises(ValueError, match=r"warm_start=True, but classes_ was \['neg', 'pos'\] and now is \['x', 'y'\]"):
        classifier.fit(TEXTS, ["x", "y"] * 12)


def test_whole_weights_are_copies_and_equal_samples_are_held_out_together():
    chosen = select_samples(["b", "a", "c"], np.array([0, 1, 0]), np.array([2.0, 1.0, 0.0]))
    assert sorted(chosen.indices.tolist()) == [0, 0, 1]
    assert chosen.weights is None
    samples = [f"text {n // 2}" for n in range(40)]
    train, validation = hold_out(samples, 0.1, 0)
    assert len(validation) == 4
    assert not {samples[index] for index in train} & {samples[index] for index in validation}


@pytest.mark.parametrize("seed", range(5))
def test_every_class_has_its_share_of_the_samples_held_out(seed):
    classes = [1] * 80 + [0] * 20
    samples = [f"text {n}" for n in range(100)]
    train, validation = hold_out(samples, 0.1, seed, classes)
    assert [classes[index] for index in validation].count(0) == 2
    assert len(validation) == 10
    assert len(train) == 90


def test_one_sample_of_every_class_stays_to_be_learned_from():
    samples, classes = [f"text {n}" for n in range(24)], [0] * 22 + [1] * 2
    train, _ = hold_out(samples, 0.9, 0, classes)
    assert {classes[index] for index in train} == {0, 1}
    # Too few of a class: as without classes.
    assert [part.tolist() for part in hold_out(samples, 0.2, 0, [0] * 23 + [1])] == [
        part.tolist() for part in hold_out(samples, 0.2, 0)
    ]


def test_an_embedder_gives_named_features():
    embedder = ParamixerEmbedder(**SMALL).set_output(transform="pandas").fit(TEXTS, LABELS)
    frame = embedder.transform(TEXTS[:2])
    assert frame.columns[0] == "paramixerembedder0"
    assert len(frame) == 2
