"""``paramixer export``."""

# No postponed annotations: the command line reads the types of the parameters.
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def export(
    run: Path,
    /,
    *,
    file_format: Annotated[Literal["onnx", "pt2"], Parameter(name="--format")] = "onnx",
    out: Path | None = None,
    tolerance: float = 1e-5,
) -> None:
    """Write the model of a run as a file that runs without this package.

    Its preprocessing and an example program are written beside it. The file is compared with the model first.

    Args:
        run: The run folder, or its model folder.
        file_format: onnx for onnxruntime and others, or pt2 for torch.export.load.
        out: The file, or a folder. By default RUN/export.
        tolerance: The largest difference from the model, relative to answers above 1.
    """
    from paramixer.cli.console import CommandConsole
    from paramixer.data.progress import show_progress
    from paramixer.export.run_export import export_run

    console = CommandConsole()
    with show_progress(console) as progress:
        exported = export_run(run, file_format, out, tolerance, progress)
    size = exported.model.stat().st_size / 1e6
    console.print_line(f"{exported.model}, {size:.1f} MB, differs from the model by at most {exported.difference:.1g}")
    console.print_line(f"{exported.preprocessing}, {exported.example}")
