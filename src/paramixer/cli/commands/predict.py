"""``paramixer predict``."""

# No postponed annotations: the command line reads the types of the parameters.
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from paramixer.cli.flags import Switch


def predict(
    run: Path,
    file: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    out: Path | None = None,
    proba: Switch = False,
    windows: Switch = False,
    text: str | None = None,
    id_column: Annotated[str | None, Parameter(name="--id")] = None,
    format: Literal["text", "csv", "tsv", "jsonl", "fasta"] | None = None,
    encoding: str | None = None,
    no_escape: Switch = False,
    batch: int = 32,
) -> None:
    """Predict every sequence of a file with the model of a run.

    Args:
        run: The run folder, or its model folder.
        file: A table, FASTA, numpy arrays, or a folder of texts, images or sounds; - reads standard input.
        out: Where to write: .csv, .jsonl or .parquet. By default predictions.csv, and standard output
            where standard input is read.
        proba: Write the probabilities of all classes, in columns probability_CLASS.
        windows: Read inputs longer than the model whole, in windows whose answers are averaged. By default they are
            cut, as in training.
        text: Column of the sequences. By default that of the training data.
        id_column: Column that names them, copied to the output. By default that of the training data, or id.
        format: What standard input holds. By default text: one input in each line.
        encoding: Of texts, such as latin-1. By default that of the training data, or UTF-8.
        no_escape: Write texts to csv as they are. By default those that a spreadsheet would execute, which begin with
            =, +, -, @, a tab or a carriage return, get a single quote in front; numbers never do.
        batch: Batch size.
    """
    from rich.console import Console

    from paramixer.cli.console import CommandConsole
    from paramixer.data.progress import show_progress
    from paramixer.training.prediction.prediction_file import predict_file

    is_stdin = str(file) == "-"
    if str(file).startswith("-") and not is_stdin:
        raise ValueError(f"unknown option {file}; see paramixer predict --help")
    if format is not None and not is_stdin:
        raise ValueError(f"--format {format} is for standard input; the name of {file} says what it holds")
    to_stdout = is_stdin and out is None
    place = out or Path("predictions.csv")
    with show_progress(Console(stderr=True)) as progress:
        summary = predict_file(
            run,
            sys.stdin.buffer if is_stdin else file,
            sys.stdout if to_stdout else place,
            format=format or "text",
            text=text,
            id_column=id_column,
            encoding=encoding,
            proba=proba,
            windows=windows,
            escape=not no_escape,
            batch=batch,
            progress=progress,
        )
    console = CommandConsole(stderr=to_stdout)
    if not to_stdout:
        console.print_line(f"{summary.inputs} predictions in {place}")
    for line in summary.describe("--windows reads them whole"):
        console.print_line(line)
