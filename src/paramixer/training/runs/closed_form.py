"""Logistic regression on n-gram counts, from a task to a run folder like any other."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from paramixer.data.task import Sequences, Task
from paramixer.training.assessment.baseline import COUNT_STRENGTHS
from paramixer.training.assessment.linear import fit_classes
from paramixer.training.assessment.metrics import METRICS, compute_metrics
from paramixer.training.assessment.verdict import score_test
from paramixer.training.callbacks.progress import Display
from paramixer.training.factory import count_parameters
from paramixer.training.runs.folder import RunFolder, write_inputs
from paramixer.training.runs.record import Outcome, build_record
from paramixer.training.weights import judge_classes, training_weights

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Sequences whose n-grams are counted at a time.
_CHUNK = 256


def fit_ngrams(
    model: Any, task: Task, folder: Path, *, seed: int, display: Display, settings: dict[str, Any]
) -> Outcome:
    """Fit on train for every strength, choose on validation, evaluate test once.

    Args:
        model: of n-gram counts; see ``paramixer.baselines.ngrams``.
        task: the data.
        folder: the run folder.
        seed: for the record.
        display: shows progress.
        settings: written to config.yaml and to the record.
    """
    run, begin = RunFolder(folder), time.monotonic()
    balance = bool(settings.get("training", {}).get("balance", False))
    task, weights = judge_classes(task, balance), training_weights(task, balance)
    run.write_config(settings)
    run.truncate_lines(0)

    def write_record(outcome: Outcome | None) -> None:
        described: dict[str, Any] = {name: settings[name] for name in ("recipe",) if name in settings}
        run.write_record(
            build_record(
                task,
                model.config,
                {**described, "training": {"strengths": list(COUNT_STRENGTHS)}},
                parameters=count_parameters(model),
                seed=seed,
                processes=1,
                seconds=time.monotonic() - begin,
                tokens=int(np.asarray(task.train.lengths).sum()),
                validations=[line for line in run.read_lines() if line["kind"] == "validation"],
                outcome=outcome,
            )
        )

    write_record(None)
    with display:
        counts = _count(model, task.train, "train", display)
        model.learn_rarity(counts)
        train, validation = model.weigh(counts), model.weigh(_count(model, task.validation, "validation", display))
        labels = np.asarray(task.train.targets)
        if len(np.unique(labels)) < task.outputs:
            raise ValueError(f"only {len(np.unique(labels))} of {task.outputs} classes are in train; nothing to learn")
        best, best_step, found = None, 0, None
        for step, strength in enumerate(COUNT_STRENGTHS, 1):
            tick = display.track(f"fitting {step} of {len(COUNT_STRENGTHS)}", 1)
            solution = fit_classes(train, labels, weights, task.outputs, strength)
            tick(1)
            model.set_weights(*solution)
            metrics = compute_metrics(_predict(model, validation), _read_targets(task.validation), task.metric, balance)
            improved = METRICS[task.metric].is_better(metrics[task.metric], best)
            line = {"kind": "validation", "step": step, "epoch": 0, "strength": strength, **metrics, "best": improved}
            run.append_line({**line, "seconds": time.monotonic() - begin})
            if improved:
                best, best_step, found = metrics[task.metric], step, solution
        if best is None or found is None:
            raise ValueError(f"no fit gave a {task.metric}; is validation of one class only?")
        model.set_weights(*found)
        model.save_pretrained(run.model)
        write_inputs(run.model, task)
        answers = _predict(model, model.weigh(_count(model, task.test, "test", display)))
        outcome = Outcome(task.metric, best, {}, len(COUNT_STRENGTHS), best_step, "all strengths were tried")
        outcome = score_test(outcome, task, answers, _read_targets(task.test), balance)
        write_record(outcome)
        display.on_outcome(outcome)
    return outcome


def _count(model: Any, split: Sequences, name: str, display: Display) -> csr_matrix:
    from scipy.sparse import vstack

    tick = display.track(f"counting {name}", len(split))
    parts = []
    for start in range(0, len(split), _CHUNK):
        items = split.__getitems__(list(range(start, min(start + _CHUNK, len(split)))))
        parts.append(model.count_ngrams([item.inputs.numpy() for item in items]))
        tick(len(items))
    return vstack(parts, format="csr")


def _predict(model: Any, counts: csr_matrix) -> Tensor:
    logits = counts @ model.weight.detach().numpy().T
    answers: Tensor = torch.from_numpy(np.ascontiguousarray(logits)) + model.bias.detach()
    return answers


def _read_targets(split: Sequences) -> Tensor:
    return torch.from_numpy(np.asarray(split.targets).astype(np.int64))
