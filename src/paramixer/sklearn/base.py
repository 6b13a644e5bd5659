"""What all estimators share: settings, training, and answers to new samples."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from paramixer.data.storage.in_memory import MemorySequences
from paramixer.data.task import Task, TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.sklearn import inputs
from paramixer.sklearn.history import History
from paramixer.sklearn.weighting import hold_out, select_samples, weigh_by_copies
from paramixer.training.assessment.baseline import fit_baseline
from paramixer.training.batches import Collate
from paramixer.training.callbacks.progress import ConsoleDisplay, Display
from paramixer.training.distributed import build_accelerator
from paramixer.training.factory import build_model
from paramixer.training.fit import fit
from paramixer.training.inference import predict_split
from paramixer.training.loop import call_model
from paramixer.training.options import TrainingOptions
from paramixer.training.recipe import resolve

# Evaluations on validation in a whole fit, and how many without an improvement end it.
_EVALUATIONS, _PATIENCE = 10, 5
# Sequences shorter than this are predicted one by one, others in batches.
_SHORT = 64
_BATCH = 32
# The history of an estimator reads the loop's loss, which no line of a log may reset.
_NO_LOG = 10**9

_MODEL = ("channels", "hidden", "blocks", "protocol", "pooling")
_TRAINING = ("epochs", "minutes", "batch", "learning_rate")


class TrainingData(NamedTuple):
    """Samples, checked, in the order in which they are learned from."""

    samples: list[Any]
    """Texts, or arrays ``[length, features]``."""
    targets: NDArray[Any]
    """One each."""
    weights: NDArray[np.float64] | None
    """How much each counts; None for all alike."""
    lengths: list[int]
    """Of the samples that were given, each once."""


class SequenceEstimator(BaseEstimator):  # type: ignore[misc]
    """What all estimators share.

    A setting that is None is the recipe's.

    Args:
        length: N, the longest sequence; longer ones are cut. None for the longest in the training data.
        channels: width of embedding and values.
        hidden: width of the hidden layers.
        blocks: how many blocks are stacked.
        protocol: "chord" or "cdil".
        pooling: what the head reads, one or several joined by +: mean, max, attention, templates, flat or cls.
        epochs: passes over the training data, at most.
        minutes: ends training after so many minutes.
        batch: batch size.
        learning_rate: learning rate of AdamW, which falls to zero along a cosine.
        validation: share of the training data by which the best model is chosen, the same of every class. Equal
            samples are not held out apart.
        early_stopping: whether training ends when validation has not improved for 5 evaluations, of which a fit has
            10; or after how many.
        baseline: whether a simple model of n-grams or numbers is fitted first, for ``baseline_score_``.
        warm_start: whether fit goes on with the model that it learned before, on samples and classes of the same kind.
        verbose: 1 shows progress on standard error, 0 nothing.
        recipe: where all other settings come from: a recipe's name or file.
        random_state: seed of everything; a RandomState, or None for numpy's own, gives another with every fit.

    Attributes:
        n_iter_: passes over the training data that were begun.
        loss_curve_: the training loss, its mean between two evaluations.
        validation_scores_: accuracy, or R2 of values, of every evaluation on the samples held out, which count
            by their weights.
        baseline_score_: the same score of the simple model, with ``baseline=True``; None without.
        input_kind_: "texts", "sequences" of any length, or "table": rows that are all equally long.
        n_features_in_: numbers per row of a table; 1 otherwise.
        model_: the torch module.
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
        minutes: float | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
        validation: float = 0.1,
        early_stopping: bool | int = True,
        baseline: bool = False,
        warm_start: bool = False,
        verbose: int = 0,
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
        self.minutes = minutes
        self.batch = batch
        self.learning_rate = learning_rate
        self.validation = validation
        self.early_stopping = early_stopping
        self.baseline = baseline
        self.warm_start = warm_start
        self.verbose = verbose
        self.recipe = recipe
        self.random_state = random_state

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Return samples and targets to learn from, and remember what kind of samples they are."""
        self._check_settings()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = inputs.read_samples(X)
        kind = inputs.infer_kind(X)
        self._check_warm_start("input_kind_", kind)
        samples: list[Any]
        if kind == "table":
            is_numeric = isinstance(self, RegressorMixin)
            table, y = validate_data(
                self, X, inputs.unwrap(y), dtype=np.float64, y_numeric=is_numeric, ensure_all_finite=False
            )
            samples = inputs.check_table(table, X, getattr(self, "feature_names_in_", None))
        else:
            samples = inputs.check_texts(X) if kind == "texts" else list(inputs.check_sequences(X))
            y = inputs.check_targets(y, len(samples))
            self.n_features_in_ = 1
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        if len(samples) < 2:
            raise ValueError(f"n_samples={len(samples)}; at least 2 samples are needed to fit")
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, samples, dtype=np.float64)
            if not (np.isfinite(weights).all() and (weights >= 0).all()):
                row = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])
                raise ValueError(f"sample_weight {row} is {weights[row]}; a weight must not be negative")
            if not weights.any():
                raise ValueError("all values of sample_weight are zero; give some sample a weight above zero")
        self.input_kind_: inputs.Kind = kind
        indices, weights = select_samples(samples, y, weights)
        lengths = [len(sample) for sample in samples]
        return TrainingData([samples[index] for index in indices], y[indices], weights, lengths)

    def _fit(self, data: TrainingData, targets: NDArray[Any], kind: Literal["class", "value"], outputs: int) -> None:
        """Learn from samples whose targets are numbers of classes or standardized values."""
        seed = _draw_seed(self.random_state)
        goes_on = self.warm_start and hasattr(self, "model_")
        if not goes_on:
            self._learn_encoding(data.samples)
        self._warn_of_cut(data.lengths)
        task = self._make_task(data, targets, kind, outputs, seed)
        resolved = resolve(
            task,
            recipe=self.recipe,
            model={name: value for name in _MODEL if (value := getattr(self, name)) is not None},
            training={name: getattr(self, name) for name in _TRAINING},
        )
        if not goes_on:
            self.model_ = build_model(task, resolved, seed)
        spread = float(np.var(task.validation.targets)) if kind == "value" else 0.0
        self.baseline_score_ = _score_baseline(task, seed, spread) if self.baseline else None
        history = History()
        display = ConsoleDisplay(Console(stderr=True)) if self.verbose else Display()
        options = self._schedule(resolved.training, len(task.train))
        fit(self.model_, task, options, seed=seed, test=False, display=display, callbacks=[history])
        self.model_.eval()
        self.n_iter_ = history.epochs
        self.loss_curve_ = history.losses
        self.validation_scores_ = [_score(metrics, spread) for metrics in history.metrics]

    def _schedule(self, options: TrainingOptions, samples: int) -> TrainingOptions:
        """Return options that evaluate several times, and stop when that is of no more use."""
        patience = options.patience
        if self.early_stopping is not False:
            patience = _PATIENCE if self.early_stopping is True else int(self.early_stopping)
        options = dataclasses.replace(options, patience=patience, log_every=_NO_LOG)
        if options.epochs is None or options.batch is None:
            return options
        steps = options.epochs * -(-samples // options.batch)
        return dataclasses.replace(
            options, warmup=min(options.warmup or 0, steps // 5), evaluate_every=max(1, steps // _EVALUATIONS)
        )

    def _make_task(
        self, data: TrainingData, targets: NDArray[Any], kind: Literal["class", "value"], outputs: int, seed: int
    ) -> Task:
        sequences = [self._encode(sample) for sample in data.samples]
        classes = targets.tolist() if kind == "class" else None
        train, validation = hold_out(data.samples, self.validation, seed, classes)
        weights = None if data.weights is None else data.weights[train]
        validation = weigh_by_copies(validation, data.weights)
        splits = {
            "train": MemorySequences([sequences[index] for index in train], targets[train], weights),
            "validation": MemorySequences([sequences[index] for index in validation], targets[validation]),
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

    def _run(self, X: Any, call: Callable[..., Any] = call_model) -> NDArray[np.float64]:
        """Return the model's answers to new samples, each the same whichever others are there."""
        check_is_fitted(self, "model_")
        samples = self._read_new(X)
        self._warn_of_cut([len(sample) for sample in samples])
        sequences = [self._encode(sample) for sample in samples]
        # Products of very short sequences round differently at other places of a batch.
        batch = 1 if self.length_ < _SHORT else _BATCH
        split = MemorySequences(sequences, np.zeros(len(sequences), np.int64))
        collate = Collate(0 if self.vocabulary_ is None else self.vocabulary_.pad or 0, with_lengths=True)
        answers, _ = predict_split(self.model_, split, batch, collate, build_accelerator(), call=call)
        return answers.double().numpy()

    def _read_new(self, X: Any) -> list[Any]:
        """Return samples of the kind that the estimator was fitted on."""
        X = inputs.read_samples(X)
        if self.input_kind_ == "texts":
            return list(inputs.check_texts(X))
        if inputs.infer_kind(X) == "texts":
            raise ValueError("texts, but the estimator was fitted on numbers")
        if self.input_kind_ == "table":
            inputs.check_equal_lengths(X, self.n_features_in_)
            table = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
            return inputs.check_table(table, X, getattr(self, "feature_names_in_", None))
        arrays = inputs.check_sequences(X)
        if arrays and arrays[0].shape[1] != self.features_:
            raise ValueError(
                f"{arrays[0].shape[1]} numbers per position, but the estimator was fitted on {self.features_}"
            )
        return list(arrays)

    def _learn_encoding(self, samples: list[Any]) -> None:
        """Learn how samples become the model's inputs: characters, or mean and scale of numbers, and the length."""
        self.vocabulary_: Vocabulary | None = None
        self.features_: int | None = None
        if self.input_kind_ == "texts":
            self.vocabulary_ = Vocabulary.from_characters(samples)
        else:
            self.features_ = samples[0].shape[1]
            together = np.concatenate(samples)
            self.mean_ = together.mean(0)
            spread = together.std(0)
            self.scale_ = np.where(spread > 0, spread, 1.0)
        longest = max(len(sample) for sample in samples) + (self.vocabulary_ is not None)
        self.length_ = max(2, longest if self.length is None else self.length)

    def _warn_of_cut(self, lengths: list[int]) -> None:
        """Warn if samples of these lengths lose their ends."""
        longest = self.length_ - (self.vocabulary_ is not None)
        if cut := sum(length > longest for length in lengths):
            warnings.warn(
                f"{cut:,} of {len(lengths):,} samples {'is' if cut == 1 else 'are'} longer than {longest:,}, the most "
                f"that the estimator reads, and lose their ends; fit one with "
                f"length={max(lengths) + self.length_ - longest}",
                stacklevel=2,
            )

    def _encode(self, sample: Any) -> NDArray[Any]:
        if self.vocabulary_ is not None:
            return self.vocabulary_.encode(sample, self.length_)
        scaled: NDArray[Any] = ((sample[: self.length_] - self.mean_) / self.scale_).astype(np.float32)
        return scaled

    def _check_settings(self) -> None:
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation={self.validation}; it must be a share from 0 up to, but not including, 1")
        if self.length is not None:
            if not isinstance(self.length, Integral) or isinstance(self.length, bool):
                raise ValueError(f"length={self.length!r}; it must be a whole number, or None")
            if self.length < 2:
                raise ValueError(f"length={self.length}; it must be at least 2, or None")
        patience = self.early_stopping
        if not isinstance(patience, bool | np.bool_) and not (isinstance(patience, Integral) and patience >= 1):
            raise ValueError(f"early_stopping={patience!r}; it must be True, False or a number of evaluations")

    def _check_warm_start(self, name: str, value: Any) -> None:
        """Raise a ValueError where a model that is to learn more has learned from something else."""
        if self.warm_start and hasattr(self, "model_") and not np.array_equal(getattr(self, name), value):
            before, now = (np.asarray(names).tolist() for names in (getattr(self, name), value))
            raise ValueError(f"warm_start=True, but {name} was {before!r} and now is {now!r}; fit a new estimator")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.non_deterministic = False
        return tags


_E = TypeVar("_E", bound=SequenceEstimator)


def document(estimator: type[_E]) -> type[_E]:
    """Add the parameters and attributes that all estimators share to the docstring of one."""
    own, _, more = inspect.cleandoc(estimator.__doc__ or "").partition("\n\nArgs:\n")
    shared = inspect.cleandoc(SequenceEstimator.__doc__ or "").partition("\n")[2]
    if more:
        arguments, _, attributes = more.partition("\n\nAttributes:\n")
        shared = shared.replace("\n\nAttributes:\n", f"\n{arguments}\n\nAttributes:\n{attributes}\n", 1)
    estimator.__doc__ = f"{own}\n{shared.rstrip()}\n"
    return estimator


def _score(metrics: dict[str, float], spread: float) -> float:
    """Return accuracy, or R2 of values with this variance."""
    if "accuracy" in metrics:
        return metrics["accuracy"]
    return 1 - metrics["mse"] / spread if spread > 0 else 0.0


def _score_baseline(task: Task, seed: int, spread: float) -> float:
    baseline = fit_baseline(task, seed=seed)
    return _score({baseline.metric: baseline.validation}, spread)


def _draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return a number itself as the seed, and one that a generator draws otherwise."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
