"""``paramixer report``: one page about one run or several."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from paramixer.data.progress import Progress, no_progress
from paramixer.report.explorer import MAX_BYTES
from paramixer.report.page import render_page
from paramixer.report.record_tables import compare_runs
from paramixer.report.runs import Run, open_run
from paramixer.report.sections import build_section
from paramixer.training.runs.folder import RunFolder

# The task of a user's own files, in a record.
_USER_FILE = "own"


def build_report(
    folders: Sequence[Path], *, sequences: int = 2000, batch: int = 32, progress: Progress = no_progress
) -> str:
    """Return an HTML page about the runs, with a comparison if there are several.

    Args:
        folders: run folders; one of cross-validation stands for the runs of its folds.
        sequences: predict at most this many test sequences per run, evenly spaced.
        batch: batch size.
        progress: counts samples and sequences.
    """
    if not folders:
        raise ValueError("name at least one run folder")
    for name, number in (("sequences", sequences), ("batch", batch)):
        if number < 1:
            raise ValueError(f"{name}={number}; it must be at least 1")
    single = [fold.path for folder in folders for fold in RunFolder(folder).list_folds() or [RunFolder(folder)]]
    runs = [open_run(folder, progress) for folder in single]
    if len({run.name for run in runs}) < len(runs):
        runs = [dataclasses.replace(run, name=f"{number}: {run.path}") for number, run in enumerate(runs, 1)]
    max_bytes = MAX_BYTES // len(runs)
    sections = [build_section(run, sequences, batch, max_bytes, progress) for run in runs]
    comparison, charts = compare_runs(runs) if len(runs) > 1 else ([], [])
    data = ", ".join(dict.fromkeys(map(_name_data, runs)))
    title = f"Run {runs[0].name}" if len(runs) == 1 else f"{len(runs)} runs"
    return render_page(title, f"Data: {data}.", sections, comparison, charts)


def _name_data(run: Run) -> str:
    """Return the name of the task, or of the file of a user."""
    task = str(run.record["task"])
    if task != _USER_FILE:
        return task
    named = run.config.get("task", task)
    files = run.config.get("data", {}).get("source", named) if named == _USER_FILE else named
    return ", ".join(Path(str(file)).name for file in (files if isinstance(files, list) else [files]))
