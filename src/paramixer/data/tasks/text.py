"""Text: is a review of the IMDB favourable? Character by character."""

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
    length: int = 4096,
    seed: int = 0,
    text: str = "text",
    label: str = "label",
    encoding: str = "utf-8",
    validation: float = 0.1,
    count: Counter = silent,
) -> Task:
    """Reviews cut to N - 1 characters behind a CLS token; the validation split is cut from the training texts."""
    return prepared_texts(
        "text",
        "text",
        source,
        length=length,
        seed=seed,
        text=text,
        label=label,
        encoding=encoding,
        shares=Shares(validation=validation),
        count=count,
    )


TASKS = (
    Definition(
        name="text",
        title="tell good from bad reviews, character by character",
        length="4096",
        classes="2",
        origin="the IMDB review set: aclImdb_v1.tar.gz, its folder, or a table with text and label",
        load=load,
    ),
)
