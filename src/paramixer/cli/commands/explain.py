"""``paramixer explain``."""

# No postponed annotations: the command line reads the types of the parameters.
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def explain(
    run: Path,
    /,
    *,
    index: int = 0,
    split: Literal["train", "validation", "test"] = "test",
    file: Annotated[Path | None, Parameter(alias="--input")] = None,
    text: str | None = None,
    position: int | None = None,
    target: str | None = None,
    window: int | None = None,
    out: Path = Path("explanation"),
) -> None:
    """Explain the answer of a model to one sequence: a picture and a page.

    Args:
        run: The run folder, or with --input its model folder.
        index: Number of the sequence in the split or in the file, from 0.
        split: The split.
        file: A file of sequences, as paramixer predict reads it. By default the data of the run.
        text: Column of the sequences in that file. By default that of the training data.
        position: Show row and column of the mixing matrix at this position. By default the one that matters most.
        target: The class to explain. By default the predicted one.
        window: Positions per occlusion. By default at most 64 windows.
        out: Name of the files; .png and .html are added. In a folder they are called explanation.
    """
    from paramixer.cli.console import CommandConsole
    from paramixer.data.progress import show_progress
    from paramixer.report.explanation import explain_sequence
    from paramixer.report.output import resolve_explanation, write_output

    console = CommandConsole()
    places = resolve_explanation(out)
    with show_progress(console) as progress:
        picture, page = explain_sequence(
            run,
            index=index,
            split=split,
            file=file,
            text=text,
            position=position,
            target=target,
            window=window,
            progress=progress,
        )
    for place, content in zip(places, (picture, page.encode()), strict=True):
        write_output(place, content)
        console.print_line(f"{place}, {len(content) / 1e6:.1f} MB")
