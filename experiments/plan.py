"""Which runs the paper's tables and figures are made of, at every scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from experiments.ablations import ABLATIONS
from experiments.cells import CDIL, CHORD, DEFAULT, PAPER_INIT, Cell, Overrides, Scale, Sources, override
from experiments.records import LEAST_STEPS
from paramixer.baselines import registry
from paramixer.training.runs.run import RunSettings

_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "paper": 4}
# Where sequences differ in length, each mixes on a ring of its own length, and nothing is spent on padding.
_VARIABLE_LENGTH = ("text", "documents", "listops")
# A long sequence teaches much: in bounded minutes more steps of smaller batches lead further than the paper's batches.
_BATCH = {"documents": 8, "genome": 8}
# The paper's images, but for fewer to choose the model on: an hour memorizes many of a third of them.
_PATHFINDER: Overrides = {"data.train": 540_000, "data.validation": 10_000, "data.test": 30_000}
# The baselines that the paper's authors ran themselves, with one layer and one head except for two of them.
_BASELINES = ("transformer", "linformer", "performer", "reformer", "nystromformer", "transformer-ls")
# Every system of the paper's Table 1, and what has come since.
_SYSTEMS = (
    *_BASELINES,
    "sparse-strided",
    "longformer",
    "bigbird",
    "linear",
    "rfa",
    "sinkhorn",
    "chordmixer",
    "cdil-cnn",
    "s4d",
)
_GENERATED = ("adding", "order", "listops", "pathfinder")
_FOUR_LAYERS = (("hfdna", "transformer"), ("mtcdna", "transformer-ls"))
_SMOKE_STEPS: Overrides = {"training.steps": 2, "training.batch": 4, "training.evaluate_every": 2}
_SMOKE_SIZES: dict[str, Overrides] = {
    "adding": {"data.train": 40, "data.validation": 8, "data.test": 8},
    "order": {"data.train": 40, "data.validation": 8, "data.test": 8},
    "listops": {"data.train": 40, "data.validation": 8, "data.test": 8, "data.length": 128},
    "pathfinder": {"data.train": 24, "data.validation": 8, "data.test": 8},
    "image": {"data.validation": 20},
    "text": {"data.length": 64},
}


def figure_synthetic(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """Error against length, Adding and Temporal Order."""
    powers = {"smoke": (range(5, 6),) * 2, "cpu": (range(7, 15),) * 2, "paper": (range(7, 16), range(7, 15))}
    for task, lengths in zip(("adding", "order"), powers[scale], strict=True):
        for power in lengths:
            length = 1 << power
            column = f"{task} {length}"
            base = {"data.length": length} | _stop_at_zero(scale, 250)
            paramixer = override(_settings(scale, task, 30, base), _paramixer_recipe(scale))
            if scale == "cpu":
                paramixer = override(paramixer, _synthetic_effort(length))
            yield from _each_seed("figure-synthetic", CHORD, column, scale, paramixer)
            if scale == "cpu" and length in (256, 1024):
                paper_init = override(paramixer, {"init.name": "paper"})
                yield from _each_seed("figure-synthetic", PAPER_INIT, column, scale, paper_init)
            compared = {"smoke": (32,), "cpu": (512, 2048) if task == "adding" else (), "paper": (length,)}[scale]
            if length in compared:
                short = override(_settings(scale, task, 12, base), _baseline_recipe(scale))
                for name in _BASELINES:
                    yield from _baseline("figure-synthetic", name, column, scale, short)


def table_lra(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """ListOps, Text, Image and Pathfinder, with CHORD and CDIL."""
    rates: dict[str, tuple[Overrides, ...]] = {
        "image": ({"training.learning_rate": 2e-3}, {"training.learning_rate": 4e-3}),
        "text": ({},),
        # Trials of a few minutes predict nothing here.
        "pathfinder": ({},),
        "listops": ({"training.learning_rate": 1e-3}, {"training.learning_rate": 3e-3}),
    }
    plan: list[tuple[str, int, tuple[str, ...], tuple[str, ...]]] = [
        ("image", 45, ("chord", "cdil"), ("transformer", "performer")),
        # Not Nystromformer: 25 000 reviews of test alone would take longer than the minutes left for learning.
        ("text", 60, ("cdil", "chord"), ("performer",)),
        ("pathfinder", 60, ("chord", "cdil"), ("performer",)),
        ("listops", 45, ("chord", "cdil"), ("nystromformer",)),
    ]
    for task, minutes, protocols, baselines in plan:
        source = getattr(sources, task, None)
        if task in ("image", "text") and source is None:
            continue
        base = _settings(scale, task, minutes, {"data.source": source})
        for protocol in protocols:
            paramixer = override(base, {"model.protocol": protocol} | _paramixer_recipe(scale))
            choices = rates[task] if scale == "cpu" else ({},)
            yield from _each_seed("table-lra", CHORD if protocol == "chord" else CDIL, task, scale, paramixer, choices)
        for name in baselines:
            recipes = ({"recipe": "paper"}, {"recipe": "quick"}) if scale == "cpu" else ({},)
            yield from _baseline("table-lra", name, task, scale, base, recipes)
        if task == "image" and scale == "cpu":
            paper_init = override(base, {"model.protocol": "chord"})
            yield from _each_seed("table-lra", PAPER_INIT, task, scale, paper_init, rates[task])
        if task == "text":
            yield _ngrams("table-lra", task, scale, base)


def table_documents(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """arXiv papers by class at 16k and 32k."""
    if sources.documents is None:
        return
    for length in (64,) if scale == "smoke" else (16384, 32768):
        column = f"documents-{'smoke' if scale == 'smoke' else f'{length // 1024}k'}"
        base = _settings(scale, "documents", 45, {"data.length": length, "data.source": sources.documents})
        paramixer = override(base, _paramixer_recipe(scale))
        yield from _each_seed("table-documents", CHORD, column, scale, paramixer)
        yield _ngrams("table-documents", column, scale, base)
        if scale == "paper":
            for name in _BASELINES:
                yield from _baseline("table-documents", name, column, scale, base)


def table_genome(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """Which organism a sequence is from: the paper's two sets of transcripts, or windows of any two genomes."""
    if scale == "paper":
        for task, source in (("hfdna", sources.hfdna), ("mtcdna", sources.mtcdna)):
            if source is None:
                continue
            base = _settings(scale, task, 0, {"data.source": source})
            yield from _each_seed("table-genome", CHORD, task, scale, base)
            for name in _BASELINES:
                size = 4 if (task, name) in _FOUR_LAYERS else 1
                sized = override(base, {"model.blocks": size, "model.heads": size})
                yield from _baseline("table-genome", name, task, scale, sized)
            yield _ngrams("table-genome", task, scale, base)
        return
    if sources.genome is None:
        return
    length = 512 if scale == "smoke" else 16384
    data = {"data.length": length, "data.source": sources.genome, "data.windows": True}
    base = _settings(scale, "genome", 30, data)
    recipes: tuple[Overrides, ...] = ({},)
    if scale == "cpu":
        recipes = ({"recipe": "paper", "training.learning_rate": 1e-3}, {"recipe": "quick"})
    yield from _each_seed("table-genome", CHORD, "genome", scale, override(base, _paramixer_recipe(scale)))
    yield from _baseline("table-genome", "nystromformer", "genome", scale, base, recipes)
    yield _ngrams("table-genome", "genome", scale, base)


def figure_rank(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """A trained A and a trained softmax attention, whose singular values are compared."""
    length = 32 if scale == "smoke" else 256
    base = _settings(scale, "adding", 6, {"data.length": length} | _stop_at_zero(scale, 200))
    paramixer = override(base, _paramixer_recipe(scale))
    yield from _each_seed("figure-rank", CHORD, f"adding {length}", scale, paramixer, seeds=1)
    baseline = override(base, _baseline_recipe(scale))
    yield from _baseline("figure-rank", "transformer", f"adding {length}", scale, baseline)


def table_links(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """Two blocks on Adding: links written from X0 against links from the block's own input."""
    length = 32 if scale == "smoke" else 1024
    base = _settings(scale, "adding", 20, {"data.length": length} | _stop_at_zero(scale, 200))
    for row, link_input in (("links from X0", "first"), ("links from the block's input", "block")):
        blocks = {"model.blocks": 2, "model.link_input": link_input}
        settings = override(base, _paramixer_recipe(scale) | blocks)
        yield from _each_seed(
            "table-links", row, f"adding {length}", scale, settings, seeds=3 if scale == "cpu" else None
        )
    if scale == "smoke":
        return
    # CHORD has log2 N + 1 links: the position itself and the powers of two. Without the longest there are log2 N.
    for task in ("adding", "order"):
        base = _settings(scale, task, 10, {"data.length": 256} | _stop_at_zero(scale, 250))
        base = override(base, _paramixer_recipe(scale) | (_synthetic_effort(256) if scale == "cpu" else {}))
        for row, count in (("CHORD, log2 N + 1 links", 9), ("CHORD, log2 N links", 8)):
            links = override(base, {"model.links": count})
            yield from _each_seed("table-links", row, f"{task} 256", scale, links, seeds=3 if scale == "cpu" else None)


def table_default(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """The default network by its one recipe; nothing is set but the data and the minutes. N-grams stand beside."""
    short = scale == "smoke"
    genome = {"data.length": 512 if short else 16384, "data.windows": True}
    # A file of one's own: a tenth of it for validation, a fifth for test, whole texts.
    reviews = {"data.text": "text", "data.label": "label", "data.test": 0.2}
    plan: list[tuple[str, str, Path | None, float, Overrides]] = [
        ("text", "text", sources.text, 15, {"data.length": 50} if short else {}),
        ("reviews", "own", sources.reviews, 3, reviews),
        ("genome", "genome", sources.genome, 10, genome),
        ("image", "image", sources.image, 15, {}),
    ]
    for column, task, source, minutes, data in plan:
        if source is None:
            continue
        settings = override(RunSettings(task=task, recipe="default"), {**data, "data.source": source})
        # The split of a small file is luck: three of them.
        seeds = 3 if (column, scale) == ("reviews", "cpu") else None
        yield from _each_seed("table-default", DEFAULT, column, scale, _bound(scale, settings, minutes), seeds=seeds)
        for seed in range(seeds or 1) if column != "image" else ():
            yield _ngrams("table-default", column, scale, override(settings, {"recipe": "paper", "seed": seed}))
    # One seed where a run is long.
    lengths = {32: (15, 1)} if short else {256: (5, 3), 1024: (15, 3), 4096: (20, 1), 16384: (30, 1)}
    for length, (minutes, seeds) in lengths.items():
        for task in ("adding", "order"):
            settings = _bound(
                scale, override(RunSettings(task=task, recipe="default"), {"data.length": length}), minutes
            )
            yield from _each_seed("table-default", DEFAULT, f"{task} {length}", scale, settings, seeds=seeds)


def table_long(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """The default network by the same recipe in more minutes; texts and genomes also without n-grams in the stem."""
    short = scale == "smoke"
    documents = {"documents-smoke": 64} if short else {"documents-16k": 16384, "documents-32k": 32768}
    pathfinder: Overrides = {} if short else _PATHFINDER
    plan: list[tuple[str, str, Path | None, float, Overrides]] = [
        ("image", "image", sources.image, 45, {}),
        ("text", "text", sources.text, 45, {"data.length": 50} if short else {}),
        ("listops", "listops", None, 45, {}),
        ("pathfinder-easy", "pathfinder", None, 15, {**pathfinder, "data.difficulty": "easy"}),
        ("pathfinder", "pathfinder", None, 45, {**pathfinder, "data.difficulty": "pooled"}),
        *((name, "documents", sources.documents, 45, {"data.length": length}) for name, length in documents.items()),
        ("genome", "genome", sources.genome, 30, {"data.length": 512 if short else 16384, "data.windows": True}),
    ]
    for column, task, source, minutes, data in plan:
        if source is None and task not in _GENERATED:
            continue
        settings = _bound(scale, override(RunSettings(task=task), {**data, "data.source": source}), minutes)
        whole = override(settings, {"recipe": "default"})
        yield from _each_seed("table-long", DEFAULT, column, scale, whole)
        if column in ("text", "documents-smoke", "documents-16k", "genome"):
            chain = override(settings, {"recipe": "ablation: no n-grams"})
            yield from _each_seed("table-long", f"{DEFAULT}, no n-grams", column, scale, chain)


def table_systems(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """All systems in the same ten minutes: AdamW, a cosine, and one of two learning rates, tried for a minute each."""
    short = scale == "smoke"
    plan: list[tuple[str, str, Path | None, tuple[str, ...], Overrides]] = [
        ("image", "image", sources.image, _SYSTEMS, {}),
        ("text", "text", sources.text, _SYSTEMS, {}),
        ("listops", "listops", None, _SYSTEMS, {}),
        ("pathfinder", "pathfinder", None, _SYSTEMS, {}),
        *((f"order {n}", "order", None, _BASELINES, {"data.length": n}) for n in ((32,) if short else (512, 2048))),
        ("documents-16k", "documents", sources.documents, _BASELINES, {"data.length": 64 if short else 16384}),
        (
            "genome",
            "genome",
            sources.genome,
            _BASELINES,
            {"data.length": 512 if short else 16384, "data.windows": True},
        ),
    ]
    rates = ({"training.learning_rate": 1e-3}, {"training.learning_rate": 3e-4})
    for column, task, source, names, data in plan:
        if source is None and task not in _GENERATED:
            continue
        base = _settings(scale, task, 10, {**data, "data.source": source})
        ours = _bound(scale, override(RunSettings(task=task, recipe="default", data=base.data), {}), 10)
        yield from _each_seed("table-systems", DEFAULT, column, scale, ours)
        yield from _each_seed("table-systems", CHORD, column, scale, override(base, _paramixer_recipe(scale)))
        for name in names[:2] if short else names:
            theirs = override(base, {"training.optimizer": "adamw"})
            choices = ({},) if short else rates
            rules = {"trial_minutes": 1, "least_steps": LEAST_STEPS}
            yield from _baseline("table-systems", name, column, scale, theirs, choices, **rules)


def table_ablations(scale: Scale, sources: Sources) -> Iterable[Cell]:
    """The default network with one thing changed or left out, all by the same number of steps.

    So many that a run takes some five to ten minutes of one thread. Equal minutes would also compare what else
    the machine did.
    """
    short = scale == "smoke"
    plan: list[tuple[str, Path | None, int, Overrides]] = [
        ("image", sources.image, 2800, {}),
        ("text", sources.text, 1400, {"data.length": 50} if short else {}),
        ("genome", sources.genome, 1600, {"data.length": 512 if short else 16384, "data.windows": True}),
    ]
    for seed in range(1 if short else 2):
        for task, source, steps, data in plan[:1] if short else plan:
            if source is None:
                continue
            settings = override(RunSettings(task=task, seed=seed), {**data, "data.source": source})
            settings = _bound(scale, settings, 0)
            if scale == "cpu":
                settings = override(settings, {"training.minutes": None, "training.steps": steps})
            yield Cell("table-ablations", DEFAULT, task, scale, override(settings, {"recipe": "default"}))
            for recipe, ablation in ABLATIONS.items():
                if task != "image" or not ablation.symbols_only:
                    cell = override(settings, {"recipe": recipe})
                    yield Cell("table-ablations", ablation.title, task, scale, cell)


EXPERIMENTS: dict[str, Callable[[Scale, Sources], Iterable[Cell]]] = {
    "figure-synthetic": figure_synthetic,
    "table-lra": table_lra,
    "table-genome": table_genome,
    "table-documents": table_documents,
    "table-links": table_links,
    "table-default": table_default,
    "table-long": table_long,
    "table-systems": table_systems,
    "table-ablations": table_ablations,
    "figure-rank": figure_rank,
}


def _bound(scale: Scale, settings: RunSettings, minutes: float) -> RunSettings:
    """Return the settings with an end: a few steps of tiny data, so many minutes, or the epochs of the recipe."""
    if scale == "smoke":
        return override(settings, {**_SMOKE_SIZES.get(settings.task, {}), **_SMOKE_STEPS})
    return override(settings, {"training.minutes": minutes}) if scale == "cpu" else settings


def _settings(scale: Scale, task: str, minutes: float, overrides: Overrides) -> RunSettings:
    """Return a task's run by the paper's recipe: a few steps, so many minutes, or the paper's epochs."""
    settings = RunSettings(task=task, recipe="paper")
    if scale == "smoke":
        return override(settings, {**_SMOKE_SIZES.get(task, {}), **overrides, **_SMOKE_STEPS})
    if task == "pathfinder":
        overrides = overrides | {"data.difficulty": "pooled"}
    if scale == "paper":
        return override(settings, overrides)
    bounds: Overrides = {"training.minutes": minutes, "training.schedule": "cosine", "training.warmup": 50}
    bounds |= {"training.batch": _BATCH.get(task)}
    if task == "pathfinder":
        bounds |= _PATHFINDER | {"training.evaluate_every": 4000}
    if task in _VARIABLE_LENGTH:
        bounds |= {"model.padding": "length"}
    return override(settings, bounds | overrides)


def _stop_at_zero(scale: Scale, every: int) -> Overrides:
    """In bounded minutes: stop at no error on validation, evaluated every so many steps."""
    return {"training.until": "error=0", "training.evaluate_every": every} if scale == "cpu" else {}


def _synthetic_effort(length: int) -> Overrides:
    """How long Paramixer trains on a synthetic task, and with which batch size."""
    if length <= 1024:
        # To the end of the cosine: no error in 5000 sequences does not yet promise none in others.
        return {"training.steps": 3000, "training.until": None}
    # Smaller batches from 4096 on: leaving a plateau takes a number of steps, whatever each of them costs.
    return {} if length == 2048 else {"training.batch": 65536 // length, "training.evaluate_every": 500}


def _paramixer_recipe(scale: Scale) -> Overrides:
    """The paper's recipe at its own scale; in bounded minutes the quick one."""
    return {"smoke": {"init.name": "identity"}, "cpu": {"recipe": "quick"}, "paper": {}}[scale]


def _baseline_recipe(scale: Scale) -> Overrides:
    """The same for a baseline; what concerns links and chains does not apply to it."""
    return {"recipe": "quick"} if scale == "cpu" else {}


def _each_seed(
    experiment: str,
    row: str,
    column: str,
    scale: Scale,
    settings: RunSettings,
    choices: tuple[Overrides, ...] = ({},),
    seeds: int | None = None,
) -> Iterable[Cell]:
    for seed in range(seeds or _SEEDS[scale]):
        yield Cell(experiment, row, column, scale, override(settings, {"seed": seed}), choices)


def _baseline(
    experiment: str,
    name: str,
    column: str,
    scale: Scale,
    settings: RunSettings,
    choices: tuple[Overrides, ...] = ({},),
    **rules: Any,
) -> Iterable[Cell]:
    title = registry.get(name).title
    for cell in _each_seed(experiment, title, column, scale, override(settings, {"system": name}), choices):
        yield dataclasses.replace(cell, **rules)


def _ngrams(experiment: str, column: str, scale: Scale, settings: RunSettings) -> Cell:
    """Return the cell of logistic regression on n-grams, which is fitted in one go."""
    fitted = override(settings, {"system": "ngrams", "training": {}})
    if scale == "smoke":
        fitted = override(fitted, {"model.rank": 4096})
    return Cell(experiment, registry.get("ngrams").title, column, scale, fitted)
