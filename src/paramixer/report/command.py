"""``paramixer report`` and ``paramixer explain``: pages and pictures of runs."""

# No postponed annotations here: the command line reads the fields' types.
import base64
import dataclasses
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import torch
from rich.console import Console
from torch import Tensor

from paramixer.data.formats import unlabeled
from paramixer.data.progress import counted
from paramixer.data.task import TaskInfo
from paramixer.explain import explain
from paramixer.nn.model import Paramixer
from paramixer.nn.pretrained import replace_file
from paramixer.report import explanation_figure, sections
from paramixer.report.page import RunPart, render
from paramixer.report.runs import open_run
from paramixer.report.sequence import look_of
from paramixer.training.command import task_of
from paramixer.training.factory import load_model
from paramixer.training.preprocessing import read_inputs
from paramixer.training.run_folder import RunFolder, model_folder


@dataclass(frozen=True)
class ReportOptions:
    """One page about a run, or about several side by side; it opens from disk, without a network."""

    runs: list[Path]
    """Run folders."""
    out: Path = Path("report.html")
    """The page; in a folder that exists it is called report.html."""
    sequences: int = 2000
    """Sequences of test that each model answers for the page, evenly spread."""
    batch: int = 32
    """Sequences at a time."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("name at least one run folder")
        for name in ("sequences", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True)
class ExplainOptions:
    """Why a run's model answers what it answers to one sequence: a picture and a page."""

    run: Path
    """The run folder, or with --input the model folder of one."""
    index: int = 0
    """Which sequence of the split, or of the file, counted from 0."""
    split: Literal["train", "validation", "test"] = "test"
    """Of which split."""
    input: Path | None = None
    """A file of sequences, as paramixer predict reads it; None for the run's own data."""
    text: str | None = None
    """Column of the sequences in that file; None for the one of the training data."""
    position: int | None = None
    """The position to look at; None for the one that the head reads, or the one with the strongest evidence."""
    target: str | None = None
    """The class to explain; None for the model's answer."""
    window: int | None = None
    """Positions blotted out at a time; None for at most 64 windows."""
    out: Path = Path("explanation")
    """The files' name; .png and .html are added. In a folder that exists they are called explanation."""


def report(options: ReportOptions, console: Console) -> Path:
    """``paramixer report``; returns where the page is."""
    out = _place(options.out, "report.html")
    runs = [open_run(path, console) for path in options.runs]
    if len({run.name for run in runs}) < len(runs):
        runs = [dataclasses.replace(run, name=f"{number}: {run.path}") for number, run in enumerate(runs, 1)]
    parts = []
    for run in runs:
        budget = sections.BUDGET // len(runs)
        parts.append(sections.part_of(run, options.sequences, options.batch, budget, console))
    comparison, charts = sections.compared(runs) if len(runs) > 1 else ([], [])
    tasks = ", ".join(dict.fromkeys(run.record["task"] for run in runs))
    title = f"Run {runs[0].name}" if len(runs) == 1 else f"{len(runs)} runs"
    _write(out, render(title, f"Task: {tasks}.", parts, comparison, charts).encode(), console)
    return out


def explain_answer(options: ExplainOptions, console: Console) -> tuple[Path, Path]:
    """``paramixer explain``; returns where picture and page are."""
    named = options.out.with_suffix("") if options.out.suffix in (".png", ".html") else options.out
    out = _place(named, "explanation")
    files = _place(out.with_name(f"{out.name}.png")), _place(out.with_name(f"{out.name}.html"))
    folder = model_folder(options.run)
    model = load_model(folder)
    if not isinstance(model, Paramixer):
        raise ValueError(f"{options.run} holds {model.config.mixer}, which has no positions to explain")
    sequence, info, name, truth = _asked(options, folder, console)
    target = _class(options.target, info)
    positions = None if options.position is None else [options.position]
    with counted(console) as count:
        found = explain(model, sequence, positions, target=target, window=options.window, count=count)
    if not (found.answer.isfinite().all() and found.evidence.isfinite().all()):
        raise ValueError(f"{name}: the model's numbers for it are not finite, and nothing can be drawn")
    with console.status("drawing"):
        said = sections.answer_words(found.answer, info)
        title = f"{name}: {said}" + (f", truth {truth}" if truth is not None else "")
        if options.target is not None:
            title += f"; evidence for {options.target}"
        drawn = explanation_figure.draw(look_of(sequence, info), found, title)
        one = sections.explorer(model, info, sequence, title, sections.BUDGET, found)
    words = "; ".join(name for name, _ in explanation_figure.maps_of(found))
    address = f"data:image/png;base64,{base64.b64encode(drawn).decode()}"
    part = RunPart(
        options.run.resolve().name,
        explorers=[one],
        explorer_words=sections.explorer_words([one]),
        pictures=[{"address": address, "words": f"Maps of position {found.positions[0]}: {words}."}],
    )
    page = render(title, f"Task: {info.name}, {found.length} positions.", [part])
    for path, content in zip(files, (drawn, page.encode()), strict=True):
        _write(path, content, console)
    return files


def _asked(options: ExplainOptions, folder: Path, console: Console) -> tuple[Tensor, TaskInfo, str, str | None]:
    """The sequence, what is known about it, its name, and what is true."""
    if options.index < 0:
        raise ValueError(f"index={options.index}; sequences are counted from 0")
    if options.input is not None:
        info, _ = read_inputs(folder)
        asked = next(islice(unlabeled.read(options.input, info, options.text), options.index, None), None)
        if asked is None:
            raise ValueError(f"{options.input} has no sequence {options.index}")
        return torch.tensor(asked.sequence), info, f"{options.input.name}, {asked.id}", None
    task = task_of(RunFolder(options.run), console)
    split = task.splits[options.split]
    if options.index >= len(split):
        raise ValueError(f"index={options.index}; {options.split} has {len(split)} sequences")
    item = split[options.index]
    return item.inputs, task, f"{options.split} {options.index}", sections.truth_words(item.target, task)


def _class(name: str | None, info: TaskInfo) -> int | None:
    if name is None:
        return None
    if name not in info.classes:
        known = f"it knows {', '.join(info.classes)}" if info.classes else "it answers with a value"
        raise ValueError(f"the model knows no class {name!r}; {known}")
    return info.classes.index(name)


def _place(path: Path, inside: str | None = None) -> Path:
    """Where to write, found out before any work is done; below the path with this name where it is a folder."""
    if path.is_dir():
        if inside is None:
            raise IsADirectoryError(f"--out {path} is a folder; give another name")
        return path / inside
    blocked = next((above for above in path.parents if above.exists() and not above.is_dir()), None)
    if blocked is not None:
        raise NotADirectoryError(f"--out {path}: {blocked} is a file, not a folder")
    return path


def _write(path: Path, content: bytes, console: Console) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
    console.print(f"written: {path}, {len(content) / 1e6:.1f} MB", highlight=False, soft_wrap=True)
