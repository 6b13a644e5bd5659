"""Documents: which field is a paper from? Tens of thousands of characters each."""

from __future__ import annotations

from pathlib import Path

from paramixer.data.definition import Definition
from paramixer.data.progress import Progress, no_progress
from paramixer.data.splits import Shares
from paramixer.data.task import Task
from paramixer.data.tasks.text import prepare_texts


def load(
    *,
    source: Path,
    length: int = 16384,
    seed: int = 0,
    text: str = "text",
    label: str = "category",
    encoding: str = "utf-8",
    progress: Progress = no_progress,
) -> Task:
    """Return the first N - 1 characters of every paper after a CLS token; without splits, cut 70 / 20 / 10."""
    return prepare_texts(
        "documents",
        "documents-16k" if length <= 16384 else "documents-32k",
        source,
        length=length,
        seed=seed,
        text=text,
        label=label,
        encoding=encoding,
        shares=Shares(validation=0.2, test=0.1),
        progress=progress,
    )


TASKS = (
    Definition(
        name="documents",
        title="tell the field of a scientific paper from its first characters",
        length="16384 or 32768",
        classes="4 in the paper",
        origin="folders of .txt named for their classes, or a table with text and category",
        load=load,
    ),
)
