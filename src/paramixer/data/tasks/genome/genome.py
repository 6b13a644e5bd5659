"""Genome: which organism is a stretch of DNA from? Every FASTA file of a folder is a class."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paramixer.data.definition import Definition
from paramixer.data.errors import DataError, check_integer
from paramixer.data.formats import fasta
from paramixer.data.preparation import write_samples
from paramixer.data.progress import Progress, no_progress
from paramixer.data.samples import Row, Sample
from paramixer.data.splits import SPLITS, Shares
from paramixer.data.storage import cache
from paramixer.data.storage.arrow import StoredSequences
from paramixer.data.storage.prepared import Preparation, prepare
from paramixer.data.task import Task, TaskInfo
from paramixer.data.tasks.genome.class_files import Survey, are_chromosomes, find_files, survey_file
from paramixer.data.tasks.genome.windows import WindowSequences, cut_windows, name_span
from paramixer.data.vocabulary import BASES


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """The settings of a genome task."""

    name: str
    preset: str
    source: Path
    length: int
    seed: int
    windows: bool | None
    shortest: int
    strict: bool
    classes: tuple[str, ...]
    stride: int

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that are saved with the data."""
        names = "seed", "windows", "strict", "stride" if self.windows else "shortest"
        return {option: getattr(self, option) for option in names}

    @property
    def metric(self) -> Literal["accuracy", "roc_auc"]:
        """The paper's metric for two classes, which is not defined for more."""
        return "roc_auc" if len(self.classes) == 2 else "accuracy"


def _make_loader(name: str, preset: str) -> Callable[..., Task]:
    def load(
        *,
        source: Path,
        length: int = 16384,
        seed: int = 0,
        windows: bool | None = None,
        shortest: int = 5000,
        strict: bool = False,
        classes: Sequence[str] | None = None,
        stride: int | None = None,
        progress: Progress = no_progress,
    ) -> Task:
        """Return whole records cut to N and split 60/20/20 at random, or windows of chromosomes split by position.

        Args:
            source: a folder of FASTA files; each is a class, named like the file.
            length: N.
            seed: of the split of records, or of where training windows start.
            windows: cut windows of N bases, none of them unknown, from every record; by default if all files hold
                chromosomes, see :func:`are_chromosomes`.
            shortest: only records with more bases than this are used; not for windows.
            strict: refuse letters that stand for no base. By default they are read as N.
            classes: names of the classes in the order of their numbers; by default all files, sorted.
            stride: bases per training window; by default N, which gives as many as fit side by side.
            progress: shows progress.
        """
        stride = length if stride is None else stride
        for option, value, least in (("length", length, 2), ("shortest", shortest, 0), ("stride", stride, 1)):
            check_integer(option, value, least)
        identity = cache.identify(source)
        files = find_files(source, classes)
        plan = _Plan(
            name=name,
            preset=preset,
            source=source,
            length=length,
            seed=seed,
            windows=windows,
            shortest=shortest,
            strict=strict,
            classes=tuple(files),
            stride=stride,
        )
        key = {**dataclasses.asdict(plan), "source": identity}
        task = prepare(name, key, lambda preparation: _build(preparation, plan, files), progress)
        if not task.settings["windows"]:
            return task
        assert isinstance(task.train, StoredSequences)
        return dataclasses.replace(task, train=WindowSequences(task.train, length, stride, seed))

    return load


load = _make_loader("genome", "hfdna")


def _build(preparation: Preparation, plan: _Plan, files: dict[str, Path]) -> TaskInfo:
    surveys = [survey_file(preparation, name, path, plan.strict) for name, path in files.items()]
    windows = plan.windows
    if windows is None:
        windows = all(are_chromosomes(survey.lengths, plan.length) for survey in surveys)
    write = _write_windows if windows else _write_records
    info = write(preparation, dataclasses.replace(plan, windows=windows), surveys)
    notes = [
        f"{survey.name}: {survey.unknown} letters that are no bases read as N" for survey in surveys if survey.unknown
    ]
    return dataclasses.replace(info, notes=(*info.notes, *notes))


def _write_records(preparation: Preparation, plan: _Plan, surveys: list[Survey]) -> TaskInfo:
    notes = []
    for survey in surveys:
        count = int((survey.lengths > plan.shortest).sum())
        if not count:
            most = survey.lengths.max()
            raise DataError(
                f"no record has over {plan.shortest} bases, the most is {most}; lower shortest", survey.path
            )
        notes.append(f"{survey.name}: {count} of {len(survey.lengths)} records have over {plan.shortest} bases")

    def read() -> Iterator[Sample]:
        for name, path, _, _ in surveys:
            for record in fasta.read_records(path, plan.strict):
                if len(record.sequence) > plan.shortest:
                    yield Sample(record.sequence, name, f"{path}, {record.place}", id=record.name)

    info = write_samples(
        preparation,
        read,
        source=str(plan.source),
        name=plan.name,
        preset=plan.preset,
        length=plan.length,
        seed=plan.seed,
        settings=plan.settings,
        shares=Shares(validation=0.2, test=0.2),
        metric=plan.metric,
        target="class",
        vocabulary=BASES,
        classes=plan.classes,
    )
    return dataclasses.replace(info, notes=(*notes, *info.notes))


def _write_windows(preparation: Preparation, plan: _Plan, surveys: list[Survey]) -> TaskInfo:
    filled: set[tuple[str, str]] = set()

    def rows() -> Iterator[tuple[str, Row]]:
        for number, (name, path, _, _) in enumerate(surveys):
            for record in fasta.read_records(path, plan.strict):
                for split, begin, end in cut_windows(record.sequence, plan.length, plan.stride):
                    filled.add((name, split))
                    ids = BASES.encode(record.sequence[begin:end])
                    yield split, Row(ids, number, end - begin, name_span(record.name, begin, end))
                # Not held while the next chromosome is read.
                del record

    preparation.write(rows(), BASES.dtype)
    for name, path, _, _ in surveys:
        for split in SPLITS:
            if (name, split) not in filled:
                raise DataError(
                    f"no window of {plan.length} bases without N for {split}; a record of {10 * plan.length} bases has "
                    "one for every split, so lower the length, or take whole records (windows=False)",
                    path,
                )
    notes = [
        f"{name}: windows of {len(lengths)} records with {lengths.sum()} bases, split by position"
        for name, _, lengths, _ in surveys
    ]
    return TaskInfo(
        name=plan.name,
        preset=plan.preset,
        metric=plan.metric,
        target="class",
        length=plan.length,
        classes=plan.classes,
        vocabulary=BASES,
        settings=plan.settings,
        notes=tuple(notes),
    )


def _definition(name: str, title: str, origin: str, load: Callable[..., Task]) -> Definition:
    return Definition(name=name, title=title, length="16384", classes="one per file", origin=origin, load=load)


TASKS = (
    _definition(
        "genome",
        "tell organisms apart by their DNA",
        "a folder of FASTA files (.fa, .fasta, .fna, also .gz), one for each class: chromosomes or transcripts",
        load,
    ),
    _definition(
        "hfdna",
        "tell human from fruit fly by long non-coding RNA",
        "a folder with the human and the fruit fly FASTA file of NONCODEv6, from noncode.org",
        _make_loader("hfdna", "hfdna"),
    ),
    _definition(
        "mtcdna",
        "tell mouse from turtle by cDNA",
        "a folder with the cDNA FASTA files (*.cdna.all.fa.gz) of mouse and of a turtle, from ensembl.org",
        _make_loader("mtcdna", "mtcdna"),
    ),
)
