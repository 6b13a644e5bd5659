"""Documents: which field is a paper from? Tens of thousands of characters each."""

from __future__ import annotations

from pathlib import Path

from paramixer.data.formats.texts import prepared_texts
from paramixer.data.progress import Counter, silent
from paramixer.data.registry import Definition
from paramixer.data.samples import Shares
from paramixer.data.task import Task


def load(
    *,
    source: Path,
    length: int = 16384,
    seed: int = 0,
    text: str = "text",
    label: str = "category",
    encoding: str = "utf-8",
    count: Counter = silent,
) -> Task:
    """The first N - 1 characters of every paper behind a CLS token; cut 70 / 20 / 10 where the source has no splits."""
    return prepared_texts(
        "documents",
        "documents-16k" if length <= 16384 else "documents-32k",
        source,
        length=length,
        seed=seed,
        text=text,
        label=label,
        encoding=encoding,
        shares=Shares(validation=0.2, test=0.1),
        count=count,
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
