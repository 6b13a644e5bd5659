"""``paramixer explain``: a figure and a page about the prediction of one sequence."""

from __future__ import annotations

import base64
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from paramixer.attribution import explain
from paramixer.data.formats import unlabeled
from paramixer.data.progress import Progress, no_progress
from paramixer.data.task import TaskInfo
from paramixer.nn.sequence_model import SequenceModel
from paramixer.report.explanation_figure import draw_explanation, list_maps
from paramixer.report.explorer import build_explorer, describe_explorers, title_explorers, title_sequence
from paramixer.report.page import RunSection, render_page
from paramixer.report.sequence import view_sequence
from paramixer.report.wording import format_prediction, format_target
from paramixer.training.factory import load_model
from paramixer.training.runs.folder import find_model_folder, read_inputs
from paramixer.training.runs.run import open_task


def explain_sequence(
    run: Path,
    *,
    index: int = 0,
    split: str = "test",
    file: Path | None = None,
    text: str | None = None,
    position: int | None = None,
    target: str | None = None,
    window: int | None = None,
    progress: Progress = no_progress,
) -> tuple[bytes, str]:
    """Return a PNG figure and an HTML page that explain a model's prediction.

    Args:
        run: run folder; with ``file`` also a model folder.
        index: number of the sequence in the split or in the file, from 0.
        split: "train", "validation" or "test".
        file: unlabeled sequences, in the formats of ``paramixer predict``; by default the data of the run.
        text: column of the sequences in the file; by default the column of the training data.
        position: whose row and column of A are shown; by default the position that the head reads, or the one with
            the largest attribution.
        target: name of the class to explain; by default the predicted class.
        window: positions per occlusion; by default chosen to give at most 64 windows.
        progress: counts samples while data is prepared, and passes through the model.
    """
    folder = find_model_folder(run)
    model = load_model(folder)
    if not isinstance(model, SequenceModel):
        raise ValueError(f"{run} is a model of n-grams, which has no positions to explain")
    sequence, info, name, label = _read_sequence(run, folder, index, split, file, text, progress)
    class_number = None if target is None else _find_class(target, info)
    positions = None if position is None else [position]
    explanation = explain(model, sequence, positions, target=class_number, window=window, progress=progress)
    if not (explanation.answer.isfinite().all() and explanation.evidence.isfinite().all()):
        raise ValueError(f"{name}: the model's outputs or gradients for it are not finite; there is nothing to draw")
    title = title_sequence(name, format_prediction(explanation.answer, info), label, info)
    if target is not None:
        title += f"; attribution of {target}"
    png = draw_explanation(view_sequence(sequence, info), explanation, title)
    explorers = [build_explorer(model, info, sequence, title, explanation=explanation)]
    maps = "; ".join(map_title for map_title, _ in list_maps(explanation))
    section = RunSection(
        run.resolve().name,
        explorers=explorers,
        explorer_title=title_explorers(explorers),
        explorer_help=describe_explorers(explorers),
        figures=[
            {
                "address": f"data:image/png;base64,{base64.b64encode(png).decode()}",
                "caption": f"Position {explanation.positions[0]}: {maps}.",
            }
        ],
    )
    return png, render_page(title, f"Task: {info.name}, {explanation.length} positions.", [section])


def _read_sequence(
    run: Path, folder: Path, index: int, split: str, file: Path | None, text: str | None, progress: Progress
) -> tuple[Tensor, TaskInfo, str, str | None]:
    """Return the sequence, its task, its name, and its label; None for a file, which has no labels."""
    if index < 0:
        raise ValueError(f"index={index}; sequences are counted from 0")
    if file is not None:
        info, _ = read_inputs(folder)
        item = next(islice(unlabeled.read(file, info, text), index, None), None)
        if item is None:
            raise ValueError(f"{file} has no sequence {index}")
        return torch.tensor(item.sequence), info, f"{file.name}, {item.id}", None
    task = open_task(run, progress)
    if split not in task.splits:
        raise ValueError(f"split={split!r}; it must be one of {', '.join(task.splits)}")
    sequences = task.splits[split]
    if index >= len(sequences):
        raise ValueError(f"index={index}; {split} has {len(sequences)} sequences")
    sample = sequences[index]
    return sample.inputs, task, f"{split} {index}", format_target(sample.target, task)


def _find_class(name: str, info: TaskInfo) -> int:
    if name not in info.classes:
        known = f"its classes are {', '.join(info.classes)}" if info.classes else "it predicts a value"
        raise ValueError(f"the model has no class {name!r}; {known}")
    return info.classes.index(name)
