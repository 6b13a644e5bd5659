"""``paramixer report``."""

# No postponed annotations: the command line reads the types of the parameters.
from pathlib import Path


def report(*runs: Path, out: Path = Path("report.html"), sequences: int = 2000, batch: int = 32) -> None:
    """Write one page about a run, or about several side by side; it opens from disk, without a network.

    Args:
        runs: Run folders.
        out: The page; in a folder it is called report.html.
        sequences: Predict at most this many test sequences per run, evenly spaced.
        batch: Batch size.
    """
    from paramixer.cli.console import CommandConsole
    from paramixer.data.progress import show_progress
    from paramixer.report.output import resolve_output, write_output
    from paramixer.report.run_report import build_report

    console = CommandConsole()
    place = resolve_output(out, "report.html")
    with show_progress(console) as progress:
        content = build_report(runs, sequences=sequences, batch=batch, progress=progress).encode()
    write_output(place, content)
    console.print_line(f"{place}, {len(content) / 1e6:.1f} MB")
