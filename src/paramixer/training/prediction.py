"""``paramixer predict``: a model's answers for a whole file, streamed from one file to another."""

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
from rich.console import Console
from torch import Tensor

from paramixer.data.errors import DataError
from paramixer.data.formats import unlabeled
from paramixer.data.formats.unlabeled import Asked
from paramixer.data.progress import counted
from paramixer.data.storage.arrow import Item
from paramixer.data.task import TaskInfo
from paramixer.training.batches import collate_for
from paramixer.training.factory import Model, load_model
from paramixer.training.preprocessing import read_inputs
from paramixer.training.run_folder import model_folder

# Among so many batches, sequences of similar length are answered together.
_TOGETHER = 16

Row = dict[str, Any]


@dataclass(frozen=True)
class PredictOptions:
    """Answer every sequence of a file with a run's model."""

    run: Path
    """The run folder, or the model folder of one."""
    file: Path
    """A table, FASTA, numpy arrays, or a folder of .txt."""
    out: Path = Path("predictions.csv")
    """Where to: .csv, .jsonl or .parquet."""
    text: str | None = None
    """Column of the sequences; None for the one of the training data."""
    id: str | None = None
    """Column that names them, kept in the output; None for the one of the training data, or id."""
    batch: int = 32
    """Sequences at a time."""


def predict(options: PredictOptions, console: Console) -> int:
    """``paramixer predict``; returns how many sequences were answered."""
    if options.out.resolve() == options.file.resolve():
        raise ValueError(f"--out {options.out} is the file to be read, which would be lost; write elsewhere")
    folder = model_folder(options.run)
    model = load_model(folder)
    info, _ = read_inputs(folder)
    count = 0
    with counted(console) as progress, written(options.out) as write:
        asked = progress(unlabeled.read(options.file, info, options.text, options.id), "predicting")
        named = unlabeled.id_column(options.file, info, options.id) or "id"
        for name, row in answered(model, info, asked, options.batch):
            write({named: name, **row})
            count += 1
        if not count:
            raise DataError("there is not a single sequence in it", options.file)
    console.print(f"{count} predictions in {options.out}", highlight=False, soft_wrap=True)
    return count


@torch.no_grad()
def answered(model: Model, info: TaskInfo, asked: Iterable[Asked], batch: int) -> Iterator[tuple[str, Row]]:
    """For every sequence, in its order: its id, and a row of the prediction and the probability of each class."""
    model.eval()
    collate = collate_for(info, model.config)
    stream = iter(asked)
    while chunk := list(islice(stream, batch * _TOGETHER)):
        order = sorted(range(len(chunk)), key=lambda index: -len(chunk[index].sequence))
        rows: dict[int, Row] = {}
        for start in range(0, len(order), batch):
            part = order[start : start + batch]
            items = [Item(torch.from_numpy(chunk[index].sequence), torch.tensor(0)) for index in part]
            inputs, lengths, _ = collate(items)
            answers = model(inputs) if lengths is None else model(inputs, lengths)
            rows |= {index: _row(answer, info) for index, answer in zip(part, answers, strict=True)}
        yield from ((found.id, rows[index]) for index, found in enumerate(chunk))


def _row(answer: Tensor, info: TaskInfo) -> Row:
    if info.target == "value":
        return {"prediction": float(answer)}
    probabilities = answer.double().softmax(-1).tolist()
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    shares = {f"probability_{label}": share for label, share in zip(info.classes, probabilities, strict=True)}
    return {"prediction": info.classes[best], **shares}


@contextmanager
def written(path: Path) -> Iterator[Callable[[Row], None]]:
    """A function that takes rows; the file is there, whole, when the context ends without an error."""
    kinds = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
    if path.suffix not in kinds:
        raise ValueError(f"{path}: predictions are written to {', '.join(kinds)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    started = path.with_name(f".{path.name}.new")
    try:
        with kinds[path.suffix](started) as write:
            yield write
        started.replace(path)
    finally:
        started.unlink(missing_ok=True)


@contextmanager
def _csv(path: Path) -> Iterator[Callable[[Row], None]]:
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
def _jsonl(path: Path) -> Iterator[Callable[[Row], None]]:
    with path.open("w", encoding="utf-8") as file:
        yield lambda row: print(json.dumps(row, ensure_ascii=False), file=file)


@contextmanager
def _parquet(path: Path) -> Iterator[Callable[[Row], None]]:
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
