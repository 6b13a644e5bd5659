"""``paramixer predict``."""

# No postponed annotations: the command line reads the types of the parameters.
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def predict(
    run: Path,
    file: Path,
    /,
    *,
    out: Path = Path("predictions.csv"),
    text: str | None = None,
    id_column: Annotated[str | None, Parameter(name="--id")] = None,
    batch: int = 32,
) -> None:
    """Predict every sequence of a file with the model of a run.

    Args:
        run: The run folder, or its model folder.
        file: A table, FASTA, numpy arrays, or a folder of .txt.
        out: Where to write: .csv, .jsonl or .parquet.
        text: Column of the sequences. By default that of the training data.
        id_column: Column that names them, copied to the output. By default that of the training data, or id.
        batch: Batch size.
    """
    from paramixer.cli.console import CommandConsole
    from paramixer.data.progress import show_progress
    from paramixer.training.prediction import predict_file

    console = CommandConsole()
    with show_progress(console) as progress:
        count = predict_file(run, file, out, text=text, id_column=id_column, batch=batch, progress=progress)
    console.print_line(f"{count} predictions in {out}")
