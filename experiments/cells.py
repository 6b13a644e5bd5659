"""What the paper's tables and figures are made of: for every cell the run, or the small grid of runs, behind it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paramixer.baselines import registry
from paramixer.recipes.presets import preset, quick
from paramixer.training.command import TrainOptions, document

Scale = Literal["smoke", "cpu", "paper"]
Settings = dict[str, Any]

CHORD, CDIL = "Paramixer CHORD", "Paramixer CDIL"
# Both initialisations are reported; the rows above have the quick recipe wherever the time is bounded.
AS_DRAWN = f"{CHORD}, the paper's initialisation"


@dataclass(frozen=True)
class Cell:
    """One number of a table or one point of a figure."""

    experiment: str
    """The table or figure."""
    row: str
    """Its row: a model, as the papers call it."""
    column: str
    """Its column: a task, with what belongs to it."""
    scale: Scale
    """At which scale."""
    options: TrainOptions
    """The run, but for what the grid decides."""
    grid: tuple[Settings, ...] = ({},)
    """Settings to choose from on validation; a name with "model." before it is the model's."""
    trial_minutes: float = 2.0
    """How long each of them is tried."""

    def trials(self) -> list[TrainOptions]:
        """The runs that choose among the grid; none if there is nothing to choose."""
        if len(self.grid) == 1:
            return []
        return [changed(self.options, {**choice, "minutes": self.trial_minutes}) for choice in self.grid]

    def final(self, choice: Settings) -> TrainOptions:
        """The run that counts."""
        return changed(self.options, choice)


def changed(options: TrainOptions, settings: Settings) -> TrainOptions:
    """The same run with other settings."""
    model = {name.removeprefix("model."): value for name, value in settings.items() if name.startswith("model.")}
    rest: Settings = {name: value for name, value in settings.items() if not name.startswith("model.")}
    return dataclasses.replace(options, **rest, model={**options.model, **model})


def key(options: TrainOptions, scale: Scale) -> str:
    """What a run is known by: everything it was told, but for where its data lies."""
    said = {name: value for name, value in document(options).items() if name != "source"}
    text = json.dumps({"scale": scale, **said}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Sources:
    """Where data lies that is not generated."""

    image: Path | None = None
    text: Path | None = None
    documents: Path | None = None
    genome: Path | None = None
    hfdna: Path | None = None
    mtcdna: Path | None = None


# Where sequences differ in length, each mixes on a ring of its own, and nothing is spent on padding.
_OF_MANY_LENGTHS = ("text", "documents", "listops")
# Long sequences teach much each: in bounded minutes more steps of fewer of them lead further than the paper's batches.
_FEWER = {"documents": 8, "genome": 8}
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "paper": 4}
# The paper's pictures, but for fewer to choose the model on: of a third of them an hour learns many by heart.
_PATHFINDER: Settings = {"train": 540_000, "validation": 10_000, "test": 30_000}
# Those that the paper ran itself, with one layer and one head but for what it says of two of them.
_RIVALS = ("transformer", "linformer", "performer", "reformer", "nystromformer", "transformer-ls")
_DEEP = (("hfdna", "transformer"), ("mtcdna", "transformer-ls"))
_TINY: Settings = {"steps": 2, "batch": 4, "evaluate_every": 2}


def figure_synthetic(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """Error against length, Adding and Temporal Order."""
    powers = {"smoke": (range(5, 6),) * 2, "cpu": (range(7, 15), range(7, 13)), "paper": (range(7, 16), range(7, 15))}
    for task, lengths in zip(("adding", "order"), powers[scale], strict=True):
        for power in lengths:
            length = 1 << power
            run = _bounded(scale, task, 30, length=length, **_to_zero(scale, 250))
            pace = _pace(length) if scale == "cpu" else {}
            own = changed(run, _start(scale, task, length) | pace)
            yield from _seeded("figure-synthetic", CHORD, f"{task} {length}", scale, own)
            if scale == "cpu" and length in (256, 1024):
                drawn = changed(own, {"model.init": "paper"})
                yield from _seeded("figure-synthetic", AS_DRAWN, f"{task} {length}", scale, drawn)
            shown = {"smoke": (32,), "cpu": (512, 2048) if task == "adding" else (), "paper": (length,)}[scale]
            if length in shown:
                short = _bounded(scale, task, 12, length=length, **_to_zero(scale, 250))
                short = changed(short, _rivals_start(scale, task, length))
                for name in _RIVALS:
                    yield from _rival("figure-synthetic", name, f"{task} {length}", scale, short)


def table_lra(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """ListOps, Text, Image and Pathfinder, with CHORD and CDIL."""
    grids: dict[str, tuple[Settings, ...]] = {
        "image": ({"learning_rate": 2e-3}, {"learning_rate": 4e-3}),
        "text": ({},),
        # No trial of a few minutes tells anything here.
        "pathfinder": ({},),
        "listops": ({"learning_rate": None}, {"learning_rate": 3e-3}),
    }
    plan: list[tuple[str, int, tuple[str, ...], tuple[str, ...]]] = [
        ("image", 45, ("chord", "cdil"), ("transformer", "performer")),
        # Not Nystromformer, whose 25 000 reviews of test alone would take longer than the minutes left for learning.
        ("text", 60, ("cdil", "chord"), ("performer",)),
        ("pathfinder", 60, ("chord", "cdil"), ("performer",)),
        ("listops", 45, ("chord", "cdil"), ("nystromformer",)),
    ]
    for task, minutes, protocols, rivals in plan:
        if task in ("image", "text") and getattr(sources, task) is None:
            continue
        run = _bounded(scale, task, minutes, source=getattr(sources, task, None))
        for protocol in protocols:
            own = changed(run, {"model.protocol": protocol} | _start(scale, task))
            grid = grids[task] if scale == "cpu" else ({},)
            yield from _seeded("table-lra", CHORD if protocol == "chord" else CDIL, task, scale, own, grid)
        for name in rivals:
            starts = ({}, _rivals_start(scale, task)) if scale == "cpu" else ({},)
            yield from _rival("table-lra", name, task, scale, run, starts)
        if task == "image" and scale == "cpu":
            drawn = changed(run, {"model.protocol": "chord"})
            yield from _seeded("table-lra", AS_DRAWN, task, scale, drawn, grids[task])
        if task == "text":
            yield from _ngrams("table-lra", task, scale, run)


def table_documents(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """arXiv papers by class at 16k and 32k."""
    if sources.documents is None:
        return
    for length in (64,) if scale == "smoke" else (16384, 32768):
        column = f"documents-{'smoke' if scale == 'smoke' else f'{length // 1024}k'}"
        run = _bounded(scale, "documents", 45, length=length, source=sources.documents)
        own = changed(run, _start(scale, "documents-16k", length))
        yield from _seeded("table-documents", CHORD, column, scale, own)
        yield from _ngrams("table-documents", column, scale, run)
        if scale == "paper":
            for name in _RIVALS:
                yield from _rival("table-documents", name, column, scale, run)


def table_genome(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """Which organism a sequence is from: the paper's two sets of transcripts, or windows of any two genomes."""
    if scale == "paper":
        for task, source in (("hfdna", sources.hfdna), ("mtcdna", sources.mtcdna)):
            if source is None:
                continue
            run = _bounded(scale, task, 0, source=source)
            yield from _seeded("table-genome", CHORD, task, scale, run)
            for name in _RIVALS:
                size = 4 if (task, name) in _DEEP else 1
                rival = changed(run, {"model.blocks": size, "model.heads": size})
                yield from _rival("table-genome", name, task, scale, rival)
            yield from _ngrams("table-genome", task, scale, run)
        return
    if sources.genome is None:
        return
    length = 512 if scale == "smoke" else 16384
    run = _bounded(scale, "genome", 30, length=length, source=sources.genome, windows=True)
    starts = ({"learning_rate": 1e-3}, _rivals_start(scale, "hfdna", length)) if scale == "cpu" else ({},)
    own = changed(run, _start(scale, "hfdna", length))
    yield from _seeded("table-genome", CHORD, "genome", scale, own)
    yield from _rival("table-genome", "nystromformer", "genome", scale, run, starts)
    yield from _ngrams("table-genome", "genome", scale, run)


def figure_rank(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """A trained A and a trained softmax attention, whose singular values are compared."""
    length = 32 if scale == "smoke" else 256
    run = _bounded(scale, "adding", 6, length=length, **_to_zero(scale, 200))
    own = changed(run, _start(scale, "adding", length))
    yield from _seeded("figure-rank", CHORD, f"adding {length}", scale, own, seeds=1)
    rival = changed(run, _rivals_start(scale, "adding", length))
    yield from _rival("figure-rank", "transformer", f"adding {length}", scale, rival)


def table_links(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """Two blocks on Adding: links written from X0 against links from the block's own input."""
    length = 32 if scale == "smoke" else 1024
    run = _bounded(scale, "adding", 20, length=length, **_to_zero(scale, 200))
    for row, link_input in (("links from X0", "first"), ("links from the block's input", "block")):
        settings = {"model.blocks": 2, "model.link_input": link_input}
        own = changed(run, _start(scale, "adding", length) | settings)
        yield from _seeded("table-links", row, f"adding {length}", scale, own)


EXPERIMENTS: dict[str, Callable[[Scale, Sources], Iterable[Cell]]] = {
    "figure-synthetic": figure_synthetic,
    "table-lra": table_lra,
    "table-genome": table_genome,
    "table-documents": table_documents,
    "table-links": table_links,
    "figure-rank": figure_rank,
}


def _bounded(scale: Scale, task: str, minutes: float, **settings: Any) -> TrainOptions:
    """A task's run: a few steps, so many minutes, or the paper's epochs."""
    if scale == "smoke":
        settings = {"length": 64, **settings} if task == "text" else settings
        sizes: Settings = {"train": 40, "validation": 8, "test": 8} if task in ("adding", "order") else {}
        if task == "listops":
            sizes = {"train": 40, "validation": 8, "test": 8, "length": 128}
        if task == "pathfinder":
            sizes = {"train": 24, "validation": 8, "test": 8}
        if task == "image":
            sizes = {"validation": 20}
        return TrainOptions(task=task, **{**settings, **sizes, **_TINY})
    if task == "pathfinder":
        settings |= {"difficulty": "pooled"} | ({} if scale == "paper" else _PATHFINDER | {"evaluate_every": 4000})
    if scale == "cpu":
        model = {"padding": "length"} if task in _OF_MANY_LENGTHS else {}
        paced: Settings = {"minutes": minutes, "schedule": "cosine", "warmup": 50, "batch": _FEWER.get(task)}
        return TrainOptions(task=task, model=model, **paced, **settings)
    return TrainOptions(task=task, **settings)


def _to_zero(scale: Scale, every: int) -> Settings:
    """In bounded minutes: stop at no error on validation, looked for every so many steps."""
    return {"until": "error=0", "evaluate_every": every} if scale == "cpu" else {}


def _pace(length: int) -> Settings:
    """How long Paramixer trains on a synthetic task, and on how many sequences a step."""
    if length <= 1024:
        # To the end of the cosine: no mistake in 5000 sequences does not yet promise none in others.
        return {"steps": 3000, "until": None}
    # From 4096 on smaller batches: to leave a plateau takes so many steps, whatever each of them costs.
    return {} if length == 2048 else {"batch": 65536 // length, "evaluate_every": 500}


def _start(scale: Scale, name: str, length: int | None = None) -> Settings:
    """The paper's own start and step size, or what learns sooner, by the task's preset."""
    if scale == "paper":
        return {}
    if scale == "smoke":
        return {"model.init": "identity"}
    found = quick(name, length or preset(name).length)
    return found.training | {f"model.{field}": value for field, value in found.model.items()}


def _rivals_start(scale: Scale, name: str, length: int | None = None) -> Settings:
    """The same for a rival: all but what belongs to links and chains."""
    if scale != "cpu":
        return {}
    own = _start(scale, name, length)
    return {setting: value for setting, value in own.items() if setting not in ("settle", "link_rate")}


def _seeded(
    experiment: str,
    row: str,
    column: str,
    scale: Scale,
    options: TrainOptions,
    grid: tuple[Settings, ...] = ({},),
    seeds: int | None = None,
) -> Iterable[Cell]:
    for seed in range(seeds or _SEEDS[scale]):
        yield Cell(experiment, row, column, scale, changed(options, {"seed": seed}), grid)


def _rival(
    experiment: str, name: str, column: str, scale: Scale, options: TrainOptions, grid: tuple[Settings, ...] = ({},)
) -> Iterable[Cell]:
    title = registry.baseline(name).title
    yield from _seeded(experiment, title, column, scale, changed(options, {"model.mixer": name}), grid)


def _ngrams(experiment: str, column: str, scale: Scale, options: TrainOptions) -> Iterable[Cell]:
    endless = dict.fromkeys(("minutes", "steps", "schedule", "warmup", "batch"))
    plain = changed(options, {"model.mixer": "ngrams", **endless})
    if scale == "smoke":
        plain = changed(plain, {"model.rank": 4096})
    yield Cell(experiment, registry.baseline("ngrams").title, column, scale, plain)
