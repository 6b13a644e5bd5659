"""Predictions for a whole file, streamed from one file to another."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from paramixer.data.errors import DataError
from paramixer.data.formats import unlabeled
from paramixer.data.formats.unlabeled import UnlabeledSequence
from paramixer.data.progress import Progress, no_progress
from paramixer.data.samples import Item
from paramixer.data.task import TaskInfo
from paramixer.files import remove_quietly, writing
from paramixer.nn.pretrained import PretrainedModel
from paramixer.training.batches import build_collate
from paramixer.training.factory import load_model
from paramixer.training.loop import call_model
from paramixer.training.runs.folder import find_model_folder, read_inputs

# Among so many batches, sequences of similar length are predicted together.
_BUCKET_BATCHES = 16

Row = dict[str, Any]


@dataclass(frozen=True)
class TrainedModel:
    """A model with what it was trained on, ready for raw inputs."""

    model: PretrainedModel
    """In evaluation mode."""
    info: TaskInfo
    """Vocabulary, classes and length of its data."""

    def predict(self, inputs: Iterable[Any], batch: int = 32) -> list[Row]:
        """Return a prediction, and the probability of each class, for every raw input: a text or numbers."""
        if isinstance(inputs, str | bytes):
            raise ValueError("give a list of samples, not one text")
        sequences = (
            UnlabeledSequence(str(number), unlabeled.encode(value, self.info, f"input {number}"))
            for number, value in enumerate(inputs)
        )
        return [row for _, row in predict_rows(self.model, self.info, sequences, batch)]


def load(folder: str | Path) -> TrainedModel:
    """Return the trained model of a run folder, or of a model folder.

    Args:
        folder: where ``paramixer train`` or :func:`paramixer.fit` wrote the run.
    """
    path = find_model_folder(Path(folder))
    info, _ = read_inputs(path)
    return TrainedModel(load_model(path).eval(), info)


def predict_file(
    run: Path,
    file: Path,
    out: Path,
    *,
    text: str | None = None,
    id_column: str | None = None,
    batch: int = 32,
    progress: Progress = no_progress,
) -> int:
    """Predict every sequence of a file, write a row for each, and return their number.

    Args:
        run: the run folder, or a model folder.
        file: a table, FASTA, numpy arrays, or a folder of .txt.
        out: .csv, .jsonl or .parquet; it appears when it is complete.
        text: column of the sequences; by default that of the training data.
        id_column: column that names them, copied to the output; by default that of the training data, or id.
        batch: batch size.
        progress: counts sequences.
    """
    if batch < 1:
        raise ValueError(f"batch={batch}; it must be at least 1")
    if out.resolve() == file.resolve():
        raise ValueError(f"--out {out} is the file to be read, which would be lost; write elsewhere")
    trained, count = load(run), 0
    info = trained.info
    with open_writer(out) as write:
        sequences = progress(unlabeled.read(file, info, text, id_column), "predicting")
        id_name = unlabeled.find_id_column(file, info, id_column) or "id"
        for name, row in predict_rows(trained.model, info, sequences, batch):
            write({id_name: name, **row})
            count += 1
        if not count:
            raise DataError("there is not a single sequence in it", file)
    return count


@torch.no_grad()
def predict_rows(
    model: PretrainedModel, info: TaskInfo, sequences: Iterable[UnlabeledSequence], batch: int
) -> Iterator[tuple[str, Row]]:
    """Yield the id of every sequence, in order, and a row of its prediction and the probability of each class."""
    model.eval()
    collate = build_collate(info, model.config)
    stream = iter(sequences)
    while chunk := list(islice(stream, batch * _BUCKET_BATCHES)):
        order = sorted(range(len(chunk)), key=lambda index: -len(chunk[index].sequence))
        rows: dict[int, Row] = {}
        for start in range(0, len(order), batch):
            part = order[start : start + batch]
            items = [Item(torch.from_numpy(chunk[index].sequence), torch.tensor(0)) for index in part]
            answers = call_model(model, collate(items))
            rows |= {index: _make_row(answer, info) for index, answer in zip(part, answers, strict=True)}
        yield from ((sequence.id, rows[index]) for index, sequence in enumerate(chunk))


def _make_row(answer: Tensor, info: TaskInfo) -> Row:
    if info.target == "value":
        return {"prediction": float(answer)}
    probabilities = answer.double().softmax(-1).tolist()
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    shares = {f"probability_{label}": share for label, share in zip(info.classes, probabilities, strict=True)}
    return {"prediction": info.classes[best], **shares}


@contextmanager
def open_writer(path: Path) -> Iterator[Callable[[Row], None]]:
    """Give a function that takes rows; the file appears, complete, when the context ends without an error."""
    writers = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}
    if path.suffix not in writers:
        raise ValueError(f"{path}: predictions are written to {', '.join(writers)}")
    unfinished = path.with_name(f".{path.name}.new")
    with writing(path, "the file from before is kept" if path.exists() else "no prediction was written"):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with writers[path.suffix](unfinished) as write:
                yield write
            unfinished.replace(path)
        finally:
            remove_quietly(unfinished)


@contextmanager
def _write_csv(path: Path) -> Iterator[Callable[[Row], None]]:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        first = True

        def write(row: Row) -> None:
            nonlocal first
            if first:
                writer.writerow(row)
                first = False
            writer.writerow(row.values())

        yield write


@contextmanager
def _write_jsonl(path: Path) -> Iterator[Callable[[Row], None]]:
    with path.open("w", encoding="utf-8") as file:
        yield lambda row: print(json.dumps(row, ensure_ascii=False), file=file)


@contextmanager
def _write_parquet(path: Path) -> Iterator[Callable[[Row], None]]:
    rows: list[Row] = []
    writers: list[Any] = []
    with path.open("wb") as file:

        def flush() -> None:
            table = pa.Table.from_pylist(rows)
            if not writers:
                writers.append(pq.ParquetWriter(file, table.schema))
            writers[0].write_table(table)
            rows.clear()

        def write(row: Row) -> None:
            rows.append(row)
            if len(rows) == 10_000:
                flush()

        yield write
        if rows:
            flush()
        if writers:
            writers[0].close()
