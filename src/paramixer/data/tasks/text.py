"""Text: is a review of the IMDB positive? Character by character."""

from __future__ import annotations

import codecs
from dataclasses import asdict
from pathlib import Path

from paramixer.data.definition import Definition
from paramixer.data.errors import DataError, check_integer
from paramixer.data.formats.texts import read_texts
from paramixer.data.preparation import write_samples
from paramixer.data.progress import Progress, no_progress
from paramixer.data.splits import Shares
from paramixer.data.storage import cache
from paramixer.data.storage.prepared import Preparation, prepare
from paramixer.data.task import Task, TaskInfo


def prepare_texts(
    name: str,
    preset: str,
    source: Path,
    *,
    length: int,
    seed: int,
    text: str,
    label: str,
    encoding: str,
    shares: Shares,
    progress: Progress,
) -> Task:
    """Return the task of this name: the first N - 1 characters of every text after a CLS token, and its class."""
    check_integer("length", length, 2)
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise DataError(f"encoding={encoding!r}; Python knows no such encoding, try utf-8 or latin-1") from error
    settings = {"length": length, "seed": seed, "text": text, "label": label, "encoding": encoding, **asdict(shares)}

    def build(preparation: Preparation) -> TaskInfo:
        return write_samples(
            preparation,
            lambda: read_texts(source, text, label, encoding),
            source=str(source),
            name=name,
            preset=preset,
            length=length,
            seed=seed,
            settings=settings,
            shares=shares,
            target="class",
            cls=True,
        )

    return prepare(name, {"source": cache.identify(source), **settings}, build, progress)


def load(
    *,
    source: Path,
    length: int = 4096,
    seed: int = 0,
    text: str = "text",
    label: str = "label",
    encoding: str = "utf-8",
    validation: float = 0.1,
    progress: Progress = no_progress,
) -> Task:
    """Return reviews cut to N - 1 characters after a CLS token; the validation split is cut from the training texts."""
    return prepare_texts(
        "text",
        "text",
        source,
        length=length,
        seed=seed,
        text=text,
        label=label,
        encoding=encoding,
        shares=Shares(validation=validation),
        progress=progress,
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
