"""Classifier, regressor and transformer of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from paramixer.sklearn.base import SequenceEstimator, TrainingData, document
from paramixer.training.prediction.trained_model import call_features, softmax


class _ClassEstimator(SequenceEstimator):
    """An estimator that can learn classes."""

    def __init__(
        self,
        *,
        length: int | None = None,
        channels: int | None = None,
        hidden: int | None = None,
        blocks: int | None = None,
        protocol: str | None = None,
        pooling: str | None = None,
        epochs: int | None = None,
        minutes: float | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
        validation: float = 0.1,
        early_stopping: bool | int = True,
        class_weight: dict[Any, float] | str | None = None,
        baseline: bool = False,
        warm_start: bool = False,
        verbose: int = 0,
        recipe: str = "default",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        super().__init__(
            length=length,
            channels=channels,
            hidden=hidden,
            blocks=blocks,
            protocol=protocol,
            pooling=pooling,
            epochs=epochs,
            minutes=minutes,
            batch=batch,
            learning_rate=learning_rate,
            validation=validation,
            early_stopping=early_stopping,
            baseline=baseline,
            warm_start=warm_start,
            verbose=verbose,
            recipe=recipe,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def _fit_classes(self, data: TrainingData) -> None:
        check_classification_targets(data.targets)
        classes, numbers = np.unique(data.targets, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"there is only one class, {classes.tolist()[0]!r}; a classifier needs at least 2")
        self._check_warm_start("classes_", classes)
        self.classes_ = classes
        if self.class_weight is not None:
            weights = compute_sample_weight(self.class_weight, data.targets)
            data = data._replace(weights=weights if data.weights is None else weights * data.weights)
        self._fit(data, numbers.astype(np.int64), "class", len(classes))


class _ValueEstimator(SequenceEstimator):
    """An estimator that can learn values."""

    def _fit_values(self, data: TrainingData) -> None:
        values = np.asarray(data.targets, np.float64)
        if not (self.warm_start and hasattr(self, "model_")):
            self.target_mean_ = float(np.average(values, weights=data.weights))
            self.target_scale_ = float(values.std()) or 1.0
        self._fit(data, (values - self.target_mean_) / self.target_scale_, "value", 1)


@document
class ParamixerClassifier(ClassifierMixin, _ClassEstimator):  # type: ignore[misc]
    """A classifier of sequences.

    >>> texts = ["good film", "bad film", "good one", "bad one"] * 8
    >>> classifier = ParamixerClassifier(epochs=30).fit(texts, ["pos", "neg", "pos", "neg"] * 8)
    >>> classifier.score(texts, ["pos", "neg", "pos", "neg"] * 8)
    1.0

    Args:
        class_weight: how much each class counts: a dict, "balanced" for all alike, or None for their samples' number.

    Attributes:
        classes_: the classes, sorted.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ParamixerClassifier:
        """Learn from samples and their classes; a sample of weight 2 counts like two copies."""
        self._fit_classes(self._read(X, y, sample_weight))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities ``[samples, classes]``, in the order of ``classes_``."""
        return softmax(self._run(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every sample."""
        answers = self._run(X)
        labels: NDArray[Any] = self.classes_[answers.argmax(1)]
        return labels


@document
class ParamixerRegressor(RegressorMixin, _ValueEstimator):  # type: ignore[misc]
    """Predicts a value for every sequence."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ParamixerRegressor:
        """Learn from samples and their values; a sample of weight 2 counts like two copies."""
        self._fit_values(self._read(X, y, sample_weight))
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The value of every sample."""
        answers = self._run(X).reshape(-1)
        return answers * self.target_scale_ + self.target_mean_


@document
class ParamixerEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _ClassEstimator, _ValueEstimator):  # type: ignore[misc]
    """Turns every sequence into numbers: what a classifier or regressor that it learns reads with its last layer.

    Targets that are real numbers are values; all others are classes.

    Args:
        class_weight: how much each class counts: a dict, "balanced" for all alike, or None for their samples' number.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ParamixerEmbedder:
        """Learn from samples and their classes or values; a sample of weight 2 counts like two copies."""
        data = self._read(X, y, sample_weight)
        learn = self._fit_values if data.targets.dtype.kind == "f" else self._fit_classes
        learn(data)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Features ``[samples, width]``."""
        return self._run(X, call_features)

    @property
    def _n_features_out(self) -> int:
        """The width of the features, for their names."""
        model: Any = self.model_
        return int(model.readout.weight.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
