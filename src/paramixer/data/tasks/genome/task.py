"""Genome: which organism is a stretch of DNA from? Every FASTA file of a folder is a class."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data import task
from paramixer.data.errors import DataError
from paramixer.data.formats import fasta
from paramixer.data.progress import Counter, silent
from paramixer.data.registry import Definition
from paramixer.data.samples import Sample, Shares, write_samples
from paramixer.data.storage import cache
from paramixer.data.storage.arrow import Row, StoredSequences
from paramixer.data.task import SPLITS, Preparation, Sequences, Task, TaskInfo
from paramixer.data.tasks.genome.windows import WindowSequences, cuts, span
from paramixer.data.vocabulary import Vocabulary

VOCABULARY = Vocabulary(symbols=tuple("NACGT"), fold_case=True, pad_symbol="N", unknown_symbol="N")
"""The paper's five symbols. What is not known to be a base is as good as no base, so N also pads."""

# Transcripts are far below this, chromosomes far above; and so many windows leave several to each split.
_LONG, _LONG_IN_WINDOWS = 200_000, 20
# A file with a larger share of letters that are no bases is something else, protein for example.
_MOST_UNKNOWN = 0.1
# The baseline learns from at most so many sequences, and has at most 4^6 counts for each.
_MOST_LEARNT, _LONGEST_WORD = 20_000, 6


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What was asked for."""

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

    def __post_init__(self) -> None:
        for option, least in (("length", 2), ("shortest", 0), ("stride", 1)):
            if getattr(self, option) < least:
                raise DataError(f"{option}={getattr(self, option)}; it must be at least {least}")

    @property
    def settings(self) -> dict[str, Any]:
        """As they are written down."""
        wanted = "seed", "windows", "strict", "stride" if self.windows else "shortest"
        return {option: getattr(self, option) for option in wanted}

    @property
    def metric(self) -> Literal["accuracy", "roc_auc"]:
        """The paper's for two classes; it has no meaning for more."""
        return "roc_auc" if len(self.classes) == 2 else "accuracy"


class _Survey(NamedTuple):
    """What a first reading found in the file of a class."""

    name: str
    path: Path
    lengths: NDArray[np.int64]
    unknown: int


def _loader(name: str, preset: str) -> Callable[..., Task]:
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
        count: Counter = silent,
    ) -> Task:
        """Whole records cut to N and split 60/20/20 at random, or windows of chromosomes split by position.

        Args:
            source: a folder of FASTA files; each is a class, named like the file.
            length: N.
            seed: of the split of records, or of where training windows start.
            windows: cut windows of N bases, none of them unknown, from every record; by default if all files hold
                chromosomes, see :func:`are_chromosomes`.
            shortest: only records with more bases than this; not for windows.
            strict: refuse letters that stand for no base; otherwise they are read as N.
            classes: which files, by class name, in the order of their numbers; by default all, sorted.
            stride: bases for each training window; by default N, which gives as many as fit side by side.
            count: shows progress.
        """
        seen = cache.identity(source)
        files = _files(source, classes)
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
            stride=length if stride is None else stride,
        )
        key = {**dataclasses.asdict(plan), "source": seen}
        prepared = task.prepared(name, key, lambda preparation: _built(preparation, plan, files), count)
        if not prepared.settings["windows"]:
            return prepared
        assert isinstance(prepared.train, StoredSequences)
        return dataclasses.replace(prepared, train=WindowSequences(prepared.train, length, plan.stride, seed))

    return load


load = _loader("genome", "hfdna")


def are_chromosomes(lengths: NDArray[np.int64], length: int) -> bool:
    """Whether a file's records are so long that windows should be cut from them.

    They are if at least half of the file's bases stand in records of 200 000 bases and 20 windows or more.
    """
    long = lengths >= max(_LONG, _LONG_IN_WINDOWS * length)
    return bool(2 * lengths[long].sum() >= lengths.sum())


def _files(source: Path, classes: Sequence[str] | None) -> dict[str, Path]:
    """The file of each class."""
    if not source.is_dir():
        raise DataError("one file; every file is a class, so give a folder with two or more of them", source)
    found: dict[str, Path] = {}
    for path in sorted(source.iterdir()):
        if path.name.startswith(".") or not fasta.is_fasta(path) or not path.is_file():
            continue
        name = re.sub(r"\.gz$", "", path.name, flags=re.IGNORECASE).rpartition(".")[0]
        if name in found:
            raise DataError(f"class {name!r} is also in {found[name].name}; take one of them away", path)
        found[name] = path
    for name in classes or ():
        if name not in found:
            raise DataError(
                f"there is no FASTA file for class {name!r}; there are {', '.join(found) or 'none'}", source
            )
    chosen = {name: found[name] for name in (sorted(found) if classes is None else classes)}
    if len(chosen) < 2:
        endings = ", ".join(fasta.SUFFIXES)
        raise DataError(
            f"FASTA files ({endings}, also .gz): {', '.join(chosen) or 'none'}; every file is a class, and two or more "
            "are needed",
            source,
        )
    return chosen


def _built(preparation: Preparation, plan: _Plan, files: dict[str, Path]) -> TaskInfo:
    surveys = [_surveyed(preparation, name, path, plan.strict) for name, path in files.items()]
    chosen = plan.windows
    if chosen is None:
        chosen = all(are_chromosomes(survey.lengths, plan.length) for survey in surveys)
    write = _write_windows if chosen else _write_records
    info = write(preparation, dataclasses.replace(plan, windows=chosen), surveys)
    notes = [
        f"{survey.name}: {survey.unknown} letters that are no bases read as N" for survey in surveys if survey.unknown
    ]
    return dataclasses.replace(info, notes=(*info.notes, *notes))


def _surveyed(preparation: Preparation, name: str, path: Path, strict: bool) -> _Survey:
    # Unlike a loop, map holds no record while the next one is read, and either may be a chromosome.
    sizes = map(_size, fasta.records(path, strict))
    lengths, unknown = np.array(list(preparation.count(sizes, f"reading {path.name}")), np.int64).T
    if unknown.sum() > _MOST_UNKNOWN * lengths.sum():
        raise DataError(f"{unknown.sum()} of {lengths.sum()} letters are no bases; is it protein?", path)
    return _Survey(name, path, lengths, int(unknown.sum()))


def _size(record: fasta.Record) -> tuple[int, int]:
    return len(record.sequence), record.unknown


def _write_records(preparation: Preparation, plan: _Plan, surveys: list[_Survey]) -> TaskInfo:
    notes = []
    for survey in surveys:
        kept = int((survey.lengths > plan.shortest).sum())
        if not kept:
            most = survey.lengths.max()
            raise DataError(
                f"no record has over {plan.shortest} bases, the most is {most}; lower shortest", survey.path
            )
        notes.append(f"{survey.name}: {kept} of {len(survey.lengths)} records have over {plan.shortest} bases")

    def read() -> Iterator[Sample]:
        for name, path, _, _ in surveys:
            for record in fasta.records(path, plan.strict):
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
        vocabulary=VOCABULARY,
        classes=plan.classes,
    )
    return dataclasses.replace(info, notes=(*notes, *info.notes))


def _write_windows(preparation: Preparation, plan: _Plan, surveys: list[_Survey]) -> TaskInfo:
    filled: set[tuple[str, str]] = set()

    def rows() -> Iterator[tuple[str, Row]]:
        for number, (name, path, _, _) in enumerate(surveys):
            for record in fasta.records(path, plan.strict):
                for split, begin, end in cuts(record.sequence, plan.length, plan.stride):
                    filled.add((name, split))
                    ids = VOCABULARY.encode(record.sequence[begin:end])
                    yield split, Row(ids, number, end - begin, span(record.name, begin, end))
                # Not to be held while the next chromosome is read.
                del record

    preparation.write(rows(), VOCABULARY.dtype)
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
        vocabulary=VOCABULARY,
        settings=plan.settings,
        notes=tuple(notes),
    )


def kmer_baseline(task: Task, k: int = 3) -> float:
    """What a linear model of k-mer counts scores on the test split: the figure to beat, to stand beside any result.

    It learns from the training split alone, from at most 20 000 sequences of it.

    Args:
        task: a genome task.
        k: letters of a word, 1 to 6.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if not 1 <= k <= _LONGEST_WORD:
        raise ValueError(f"k={k}; choose 1 to {_LONGEST_WORD}")
    learnt = range(0, len(task.train), -(-len(task.train) // _MOST_LEARNT))
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(_kmer_shares(task.train, learnt, k), task.train.targets[learnt])
    shares, targets = _kmer_shares(task.test, range(len(task.test)), k), task.test.targets
    if task.metric == "roc_auc":
        return float(roc_auc_score(targets, model.predict_proba(shares)[:, 1]))
    return float(accuracy_score(targets, model.predict(shares)))


def _kmer_shares(sequences: Sequences, indices: range, k: int) -> NDArray[np.float32]:
    """The share of every k-mer in each sequence ``[sequences, 4^k]``; those with an N are left out."""
    shares = np.zeros((len(indices), 4**k), np.float32)
    for row, index in enumerate(indices):
        ids = sequences[index].inputs.numpy()
        words = np.zeros(max(len(ids) - k + 1, 0), np.int64)
        known = np.ones(len(words), bool)
        for place in range(k):
            letters = ids[place : place + len(words)]
            words = 4 * words + letters - 1
            known &= letters > 0
        counts = np.bincount(words[known], minlength=4**k)
        shares[row] = counts / max(counts.sum(), 1)
    return shares


def _definition(name: str, title: str, origin: str, load: Callable[..., Task]) -> Definition:
    return Definition(name=name, title=title, length="16384", classes="one a file", origin=origin, load=load)


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
        _loader("hfdna", "hfdna"),
    ),
    _definition(
        "mtcdna",
        "tell mouse from turtle by cDNA",
        "a folder with the cDNA FASTA files (*.cdna.all.fa.gz) of mouse and of a turtle, from ensembl.org",
        _loader("mtcdna", "mtcdna"),
    ),
)
