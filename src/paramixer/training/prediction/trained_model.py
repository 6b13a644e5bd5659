"""A trained model that reads raw inputs: predictions, probabilities and features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paramixer.data.formats.tabular.in_memory_columns import list_samples
from paramixer.data.samples import Item
from paramixer.data.task import TaskInfo
from paramixer.nn.pretrained import PretrainedModel
from paramixer.nn.sequence_model import SequenceModel
from paramixer.training.batches import Batch, build_collate
from paramixer.training.factory import load_model
from paramixer.training.loop import call_model
from paramixer.training.prediction.raw_inputs import InputSummary, ModelInput, RawInput, read_inputs
from paramixer.training.runs import folder as run_folder

# Among so many batches, sequences of similar length are predicted together.
_BUCKET_BATCHES = 16

Row = dict[str, Any]


class Answer(NamedTuple):
    """What a model makes of one input."""

    id: str
    """The source's name for the input, or its number."""
    numbers: NDArray[np.float64]
    """Logits ``[classes]``, or features ``[width]``; a single value ``[]``. With windows their mean."""


@dataclass
class TrainedModel:
    """A model with what it was trained on, ready for raw inputs.

    Inputs are texts, sequences of numbers ``[length]`` or ``[length, features]``, or token ids: a list, an array, or a
    column of pandas, polars or Arrow. They are read as the training data was. What is longer than the model is cut, as
    it was in training; with ``windows=True`` it is read whole, in windows whose answers are averaged.
    """

    model: PretrainedModel
    """In evaluation mode."""
    info: TaskInfo
    """Vocabulary, classes and length of its data."""
    last_inputs: InputSummary | None = field(default=None, compare=False)
    """How the inputs of the last call were read: how many were cut, how many symbols were unknown."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the probabilities; empty for a model that predicts values."""
        return self.info.classes

    def predict(self, inputs: Iterable[Any], batch: int = 32, *, windows: bool = False) -> list[Row]:
        """Return a prediction, and the probability of each class, for every raw input.

        Args:
            inputs: as the class says.
            batch: batch size.
            windows: whether inputs longer than the model are read whole.
        """
        return [make_row(answer.numbers, self.info) for answer in self._run(inputs, batch, windows, call_model)]

    def predict_proba(self, inputs: Iterable[Any], batch: int = 32, *, windows: bool = False) -> NDArray[np.float64]:
        """Return probabilities ``[inputs, classes]``, in the order of :attr:`classes`. Arguments as for predict."""
        if self.info.target == "value":
            raise ValueError("this model predicts a value and has no probabilities; use predict")
        answers = [softmax(answer.numbers) for answer in self._run(inputs, batch, windows, call_model)]
        return np.array(answers, np.float64).reshape(-1, len(self.classes))

    def features(self, inputs: Iterable[Any], batch: int = 32, *, windows: bool = False) -> NDArray[np.float64]:
        """Return what the last linear layer reads, ``[inputs, width]``. Arguments as for predict."""
        if not isinstance(self.model, SequenceModel):
            raise ValueError(f"a model of type {type(self.model).__name__} has no features; use predict")
        rows = [answer.numbers for answer in self._run(inputs, batch, windows, call_features)]
        return np.stack(rows) if rows else np.empty((0, 0))

    def _run(
        self, inputs: Iterable[Any], batch: int, windows: bool, call: Callable[[Any, Batch], Tensor]
    ) -> Iterator[Answer]:
        samples = enumerate(list_samples(inputs))
        raw = (RawInput(str(number), value, f"input {number}") for number, value in samples)
        self.last_inputs = InputSummary(self.info.length)
        return run_model(self.model, self.info, read_inputs(raw, self.info, self.last_inputs, windows), batch, call)


def load(folder: str | Path) -> TrainedModel:
    """Return the trained model of a run folder, or of a model folder.

    Args:
        folder: where ``paramixer train`` or :func:`paramixer.fit` wrote the run.
    """
    path = run_folder.find_model_folder(Path(folder))
    info, _ = run_folder.read_inputs(path)
    model = load_model(path).eval()
    if info.target == "class" and len(info.classes) != model.config.outputs:
        raise ValueError(
            f"{path / run_folder.INPUTS} names {len(info.classes)} classes, the model beside it has "
            f"{model.config.outputs}; restore both from one run"
        )
    return TrainedModel(model, info)


@torch.no_grad()
def run_model(
    model: PretrainedModel,
    info: TaskInfo,
    inputs: Iterable[ModelInput],
    batch: int,
    call: Callable[[Any, Batch], Tensor] = call_model,
) -> Iterator[Answer]:
    """Yield the model's answer to every input, in order; inputs of similar length share a batch.

    Args:
        model: is put into evaluation mode.
        info: about the task that it was trained on.
        inputs: as it reads them.
        batch: windows per batch.
        call: what is asked of the model, by default logits or values.
    """
    if batch < 1:
        raise ValueError(f"batch={batch}; it must be at least 1")
    model.eval()
    collate = build_collate(info, model.config)
    stream = iter(inputs)
    while chunk := list(islice(stream, batch * _BUCKET_BATCHES)):
        pieces = [(number, window) for number, source in enumerate(chunk) for window in source.windows]
        pieces.sort(key=lambda piece: -len(piece[1]))
        answers: dict[int, list[NDArray[np.float64]]] = {number: [] for number in range(len(chunk))}
        for start in range(0, len(pieces), batch):
            part = pieces[start : start + batch]
            items = [Item(torch.from_numpy(window), torch.tensor(0)) for _, window in part]
            results = call(model, collate(items)).double().cpu().numpy()
            for (number, _), result in zip(part, results, strict=True):
                answers[number].append(result)
        yield from (Answer(source.id, np.mean(answers[number], 0)) for number, source in enumerate(chunk))


def call_features(model: SequenceModel, batch: Batch) -> Tensor:
    """Return what the last linear layer reads of a batch."""
    return model.features(batch.inputs) if batch.lengths is None else model.features(batch.inputs, batch.lengths)


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities of logits along the last axis."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)  # type: ignore[no-any-return]


def make_row(answer: NDArray[np.float64], info: TaskInfo) -> Row:
    """Return the prediction, and for classes the probability of each."""
    if info.target == "value":
        return {"prediction": float(answer)}
    probabilities = softmax(answer).tolist()
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    shares = {f"probability_{label}": share for label, share in zip(info.classes, probabilities, strict=True)}
    return {"prediction": info.classes[best], **shares}
