"""Estimators with scikit-learn's interface: fit, predict, score, inside pipelines and cross-validation.

Samples are texts, sequences of numbers of any length, or the rows of a 2-D array, each a sequence of one channel.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from paramixer.data.rng import permutation
from paramixer.data.storage.in_memory import MemorySequences
from paramixer.data.task import Task, TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.training.batches import Collate
from paramixer.training.distributed import build_accelerator
from paramixer.training.factory import build_model
from paramixer.training.fit import fit
from paramixer.training.inference import predict_split
from paramixer.training.recipe import resolve

# With fewer samples none is held out: the model is chosen on what it learned from.
_LEAST_HELD_OUT = 20
# Evaluations on validation in a whole fit.
_EVALUATIONS = 10
# Sequences shorter than this are predicted one by one, others in batches.
_SHORT = 64
_BATCH = 32


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """What classifier and regressor share.

    A setting that is None is the recipe's.

    Args:
        length: N, the longest sequence; longer ones are cut. None for the longest in the training data.
        channels: width of embedding and values.
        hidden: width of the hidden layers.
        blocks: how many blocks are stacked.
        protocol: "chord" or "cdil".
        pooling: what the head reads, one or several joined by +: mean, max, attention, templates, flat or cls.
        epochs: passes over the training data.
        batch: batch size.
        learning_rate: learning rate of AdamW, which falls to zero along a cosine.
        validation: share of the training data by which the best model is chosen.
        recipe: where all other settings come from: a recipe's name or file.
        random_state: seed of everything; a RandomState, or None for numpy's own, gives another with every fit.
    """

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
        batch: int | None = None,
        learning_rate: float | None = None,
        validation: float = 0.1,
        recipe: str = "default",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.length = length
        self.channels = channels
        self.hidden = hidden
        self.blocks = blocks
        self.protocol = protocol
        self.pooling = pooling
        self.epochs = epochs
        self.batch = batch
        self.learning_rate = learning_rate
        self.validation = validation
        self.recipe = recipe
        self.random_state = random_state

    def _fit(self, X: Any, targets: NDArray[Any], kind: Literal["class", "value"], outputs: int) -> None:
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation={self.validation}; it must be a share from 0 up to, but not including, 1")
        if self.length is not None:
            if not isinstance(self.length, Integral) or isinstance(self.length, bool):
                raise ValueError(f"length={self.length!r}; it must be a whole number, or None")
            if self.length < 2:
                raise ValueError(f"length={self.length}; it must be at least 2, or None")
        seed = _draw_seed(self.random_state)
        samples = self._samples(X, fitting=True)
        self._learn_scale(samples)
        task = self._make_task([self._encode(sample) for sample in samples], targets, kind, outputs, seed)
        model = ("channels", "hidden", "blocks", "protocol", "pooling")
        training = ("epochs", "batch", "learning_rate")
        resolved = resolve(
            task,
            recipe=self.recipe,
            model={name: value for name in model if (value := getattr(self, name)) is not None},
            training={name: getattr(self, name) for name in training},
        )
        options = resolved.training
        if options.epochs is not None and options.batch is not None:
            steps = options.epochs * -(-len(task.train) // options.batch)
            options = dataclasses.replace(
                options, warmup=min(options.warmup or 0, steps // 5), evaluate_every=max(1, steps // _EVALUATIONS)
            )
        self.model_ = build_model(task, resolved, seed)
        fit(self.model_, task, options, seed=seed, test=False)
        self.model_.eval()

    def _make_task(
        self,
        sequences: list[NDArray[Any]],
        targets: NDArray[Any],
        kind: Literal["class", "value"],
        outputs: int,
        seed: int,
    ) -> Task:
        order = permutation(len(sequences), seed)
        held_out = round(len(sequences) * self.validation) if len(sequences) >= _LEAST_HELD_OUT else 0
        parts = {"validation": order[:held_out] if held_out else order, "train": order[held_out:]}
        splits = {
            name: MemorySequences([sequences[index] for index in part], targets[part]) for name, part in parts.items()
        }
        info = TaskInfo(
            name="estimator",
            preset="adding",
            metric="accuracy" if kind == "class" else "mse",
            target=kind,
            length=self.length_,
            classes=tuple(map(str, range(outputs))) if kind == "class" else (),
            vocabulary=self.vocabulary_,
            features=self.features_,
            variable_length=True,
        )
        return Task.from_splits(info, {**splits, "test": splits["validation"]}, hashlib.sha256(b"").hexdigest())

    @torch.no_grad()
    def _predict(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "model_")
        sequences = [self._encode(sample) for sample in self._samples(X, fitting=False)]
        # Products of very short sequences round differently at other places of a batch; a sample's answer should not
        # depend on the others.
        batch = 1 if self.length_ < _SHORT else _BATCH
        split = MemorySequences(sequences, np.zeros(len(sequences), np.int64))
        collate = Collate(0 if self.vocabulary_ is None else self.vocabulary_.pad or 0, with_lengths=True)
        answers, _ = predict_split(self.model_, split, batch, collate, build_accelerator())
        return answers.double().numpy()

    def _samples(self, X: Any, fitting: bool) -> list[Any]:
        """Texts, or arrays ``[length, features]``."""
        _refuse_one_text(X)
        if _is_texts(X):
            if fitting:
                self.n_features_in_ = 1
                self.vocabulary_: Vocabulary | None = Vocabulary.from_characters(X)
                self.features_: int | None = None
            elif self.vocabulary_ is None:
                raise ValueError("texts, but the estimator was fitted on numbers")
            return list(X)
        if _is_ragged(X):
            arrays = [np.asarray(sample, np.float64) for sample in X]
            arrays = [sample[:, None] if sample.ndim == 1 else sample for sample in arrays]
            if len({sample.shape[1:] for sample in arrays}) > 1 or any(sample.ndim != 2 for sample in arrays):
                raise ValueError("sequences must be of numbers, or of equally long lists of numbers")
            if not all(len(sample) and np.isfinite(sample).all() for sample in arrays):
                raise ValueError("a sequence is empty, or holds NaN or infinity")
            if fitting:
                self.n_features_in_ = 1
        else:
            array = validate_data(self, X, reset=fitting, dtype=np.float64)
            arrays = list(array[:, :, None])
        if fitting:
            self.vocabulary_, self.features_ = None, arrays[0].shape[1]
        elif self.features_ != arrays[0].shape[1]:
            raise ValueError(
                f"{arrays[0].shape[1]} numbers per position, but the estimator was fitted on {self.features_}"
            )
        return arrays

    def _learn_scale(self, samples: list[Any]) -> None:
        longest = max(len(sample) for sample in samples) + (self.vocabulary_ is not None)
        self.length_ = max(2, longest if self.length is None else self.length)
        if self.vocabulary_ is None:
            together = np.concatenate(samples)
            self.mean_ = together.mean(0)
            spread = together.std(0)
            self.scale_ = np.where(spread > 0, spread, 1.0)

    def _encode(self, sample: Any) -> NDArray[Any]:
        if self.vocabulary_ is not None:
            return self.vocabulary_.encode(sample, self.length_)
        scaled: NDArray[Any] = ((sample[: self.length_] - self.mean_) / self.scale_).astype(np.float32)
        return scaled

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.non_deterministic = False
        return tags


_E = TypeVar("_E", bound=_Estimator)


def _document(estimator: type[_E]) -> type[_E]:
    """Add the parameters that all estimators share to the docstring of one."""
    shared = inspect.cleandoc(_Estimator.__doc__ or "").partition("\n")[2]
    estimator.__doc__ = inspect.cleandoc(estimator.__doc__ or "") + "\n" + shared + "\n"
    return estimator


@_document
class ParamixerClassifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """A classifier of sequences.

    >>> texts = ["good film", "bad film", "good one", "bad one"] * 8
    >>> classifier = ParamixerClassifier(epochs=30).fit(texts, ["pos", "neg", "pos", "neg"] * 8)
    >>> classifier.score(texts, ["pos", "neg", "pos", "neg"] * 8)
    1.0
    """

    def fit(self, X: Any, y: Any) -> ParamixerClassifier:
        """Learn from samples and their classes."""
        X, y = _check_samples(self, X, y)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"there is only one class, {self.classes_[0]!r}; a classifier needs at least 2")
        self._fit(X, numbers.astype(np.int64), "class", len(self.classes_))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities ``[samples, classes]``, in the order of ``classes_``."""
        answers = self._predict(X)
        powers = np.exp(answers - answers.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)  # type: ignore[no-any-return]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every sample."""
        answers = self._predict(X)
        labels: NDArray[Any] = self.classes_[answers.argmax(1)]
        return labels


@_document
class ParamixerRegressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """Predicts a value for every sequence."""

    def fit(self, X: Any, y: Any) -> ParamixerRegressor:
        """Learn from samples and their values."""
        X, y = _check_samples(self, X, y)
        y = np.asarray(y, np.float64)
        self.target_mean_, self.target_scale_ = float(y.mean()), float(y.std()) or 1.0
        self._fit(X, (y - self.target_mean_) / self.target_scale_, "value", 1)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The value of every sample."""
        answers = self._predict(X).reshape(-1)
        return answers * self.target_scale_ + self.target_mean_


def _draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return a number itself as the seed, and one that a generator draws otherwise."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _refuse_one_text(X: Any) -> None:
    if isinstance(X, str | bytes):
        raise ValueError("give a list of samples, not one text")


def _is_texts(X: Any) -> bool:
    return isinstance(X, Sequence | np.ndarray) and len(X) > 0 and all(isinstance(sample, str) for sample in X)


def _is_ragged(X: Any) -> bool:
    """A list of sequences that are not all equally long, or of sequences of vectors."""
    if isinstance(X, np.ndarray) and X.ndim == 3:
        return len(X) > 0
    if not isinstance(X, list | tuple) or not X or not all(isinstance(s, list | tuple | np.ndarray) for s in X):
        return False
    return len({len(sample) for sample in X}) > 1 or any(np.ndim(sample) == 2 for sample in X)


def _check_samples(estimator: Any, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Return samples and targets of equal number; scikit-learn checks what it can."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    _refuse_one_text(X)
    if isinstance(X, list | tuple) and not X:
        raise ValueError("there is not a single sample")
    numeric = isinstance(estimator, RegressorMixin)
    if _is_texts(X) or _is_ragged(X):
        y = np.asarray(y)
        if y.ndim != 1 or len(y) != len(X):
            raise ValueError(f"{len(X)} samples but targets of shape {list(y.shape)}")
        missing = [place for place, target in enumerate(y.tolist()) if target is None]
        if missing:
            raise ValueError(f"target {missing[0]} is None")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError(f"target {int(np.flatnonzero(~np.isfinite(y))[0])} is NaN or infinite")
        return X, y
    X, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=numeric)
    if len(X) < 2:
        raise ValueError(f"n_samples={len(X)}; at least 2 samples are needed to fit")
    return X, y
