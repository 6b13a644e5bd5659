"""Predictions for a whole file or for standard input, streamed to a file or to standard output."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, TextIO

from paramixer.data.errors import DataError
from paramixer.data.formats import unlabeled
from paramixer.data.formats.encodings import check_encoding, is_ascii_compatible
from paramixer.data.formats.tabular.cells import parse_sequence
from paramixer.data.progress import Progress, no_progress
from paramixer.data.task import TaskInfo
from paramixer.training.prediction.output import Write, check_place, open_stream, open_writer
from paramixer.training.prediction.raw_inputs import InputSummary, RawInput, read_inputs
from paramixer.training.prediction.trained_model import Row, load, make_row, run_model

Format = Literal["text", "csv", "tsv", "jsonl", "fasta"]
"""What standard input holds; "text" has an input in each line."""

_STDIN = "standard input"
_PROBABILITY = "probability"


def predict_file(
    run: Path,
    file: Path | BinaryIO,
    out: Path | TextIO,
    *,
    format: Format = "text",
    text: str | None = None,
    id_column: str | None = None,
    encoding: str | None = None,
    proba: bool = False,
    windows: bool = False,
    escape: bool = True,
    batch: int = 32,
    progress: Progress = no_progress,
) -> InputSummary:
    """Predict every sequence of a file, write a row for each in its order, and return how they were read.

    A row has the id, the prediction and, of classes, its probability.

    Args:
        run: the run folder, or a model folder.
        file: a table, FASTA, numpy arrays, or a folder of texts, images or sounds; or a stream of this format.
        out: .csv, .jsonl or .parquet, which appears when it is complete; or a stream, which gets JSON lines where the
            input has them, and csv otherwise.
        format: of the stream.
        text: column of the sequences; by default that of the training data.
        id_column: column that names them, copied to the output; by default that of the training data, or id.
        encoding: of texts; by default that of the training data, or UTF-8.
        proba: whether a row has the probabilities of all classes, in columns probability_CLASS.
        windows: whether inputs longer than the model are read whole, in windows; by default they are cut, as they were
            in training.
        escape: whether texts that a spreadsheet would execute get a single quote in front, in csv.
        batch: batch size.
        progress: counts inputs.
    """
    if batch < 1:
        raise ValueError(f"batch={batch}; it must be at least 1")
    if isinstance(out, Path):
        check_place(out)
        if isinstance(file, Path) and out.resolve() == file.resolve():
            raise ValueError(f"--out {out} is the file to be read, which would be lost; write elsewhere")
    trained = load(run)
    if proba and trained.info.target == "value":
        raise ValueError(f"{run} predicts a value and has no probabilities; leave out --proba")
    summary = InputSummary(trained.info.length)
    with (
        _open_inputs(file, format, trained.info, text, id_column, encoding) as (id_name, raw),
        _open_output(out, format, escape) as write,
    ):
        inputs = read_inputs(progress(raw, "predicting"), trained.info, summary, windows)
        for answer in run_model(trained.model, trained.info, inputs, batch):
            write(_name_row(id_name, answer.id, _choose(make_row(answer.numbers, trained.info), proba)))
        if not summary.inputs:
            raise DataError("there is not a single sequence in it", file if isinstance(file, Path) else _STDIN)
    return summary


def _choose(row: Row, proba: bool) -> Row:
    """Return the prediction with its probability, and on request that of every class."""
    shares = {name: value for name, value in row.items() if name != "prediction"}
    if not shares:
        return row
    return {"prediction": row["prediction"], _PROBABILITY: max(shares.values()), **(shares if proba else {})}


def _name_row(id_name: str, name: str, row: Row) -> Row:
    # A column of ids may be called like one of ours.
    return {f"id_{id_name}" if id_name in row else id_name: name, **row}


def _open_output(out: Path | TextIO, format: Format, escape: bool) -> AbstractContextManager[Write]:
    if isinstance(out, Path):
        return open_writer(out, escape)
    return open_stream(out, ".jsonl" if format == "jsonl" else ".csv", escape)


@contextmanager
def _open_inputs(
    file: Path | BinaryIO,
    format: Format,
    info: TaskInfo,
    text: str | None,
    id_column: str | None,
    encoding: str | None,
) -> Iterator[tuple[str, Iterator[RawInput]]]:
    """Give the name of the column of ids, and the raw inputs."""
    if isinstance(file, Path):
        yield _name_ids(file, info, id_column, encoding), _read_file(file, info, text, id_column, encoding)
    elif format == "text":
        yield "id", _read_lines(file, info, encoding)
    else:
        # A table is read more than once: for its names, to infer what a column holds, and row by row.
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / f"stdin.{format}"
            with copy.open("wb") as target:
                shutil.copyfileobj(file, target)
            try:
                yield _name_ids(copy, info, id_column, encoding), _read_file(copy, info, text, id_column, encoding)
            except DataError as error:
                raise DataError(str(error).replace(str(copy), _STDIN)) from error


def _name_ids(file: Path, info: TaskInfo, id_column: str | None, encoding: str | None) -> str:
    return unlabeled.find_id_column(file, info, id_column, encoding) or "id"


def _read_file(
    file: Path, info: TaskInfo, text: str | None, id_column: str | None, encoding: str | None
) -> Iterator[RawInput]:
    for place, name, value in unlabeled.read_values(file, info, text, id_column, encoding):
        yield RawInput(name, value, place)


def _read_lines(stream: BinaryIO, info: TaskInfo, encoding: str | None) -> Iterator[RawInput]:
    """Yield every line: a text, or the numbers that it lists."""
    name = check_encoding(encoding or info.settings.get("encoding") or "utf-8")
    if not is_ascii_compatible(name):
        raise DataError(f"its lines cannot be told apart in {name}; convert it to utf-8 first", _STDIN)
    for number, line in enumerate(stream):
        place = f"{_STDIN}, line {number + 1}"
        try:
            value = line.decode("utf-8-sig" if (number, name) == (0, "utf-8") else name).rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(f"byte {error.start} is not {name}; give its encoding with --encoding", place) from error
        yield RawInput(str(number), parse_sequence(value, info.features is not None, "line", place), place)
