"""Logistic regression on n-gram counts, from a task to a run folder like any other."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from paramixer.baselines.ngrams import Ngrams
from paramixer.data.task import Sequences, Task
from paramixer.nn import pretrained
from paramixer.nn.config import ParamixerConfig
from paramixer.training.factory import count_parameters
from paramixer.training.metrics import METRICS, measured
from paramixer.training.preprocessing import write_inputs
from paramixer.training.progress import Display
from paramixer.training.record import Outcome, run_record
from paramixer.training.run_folder import RunFolder

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# How little the weights are held back; the best on validation is kept.
STRENGTHS = (1.0, 10.0, 100.0)
_TOGETHER = 256


def fit_ngrams(
    config: ParamixerConfig,
    task: Task,
    folder: Path,
    *,
    seed: int,
    display: Display,
    started_with: dict[str, Any],
) -> Outcome:
    """Fit on train for every strength, choose on validation, look at test once."""
    model, run, begin = Ngrams(config), RunFolder(folder), time.monotonic()
    run.write_config(started_with)
    run.keep_lines(0)

    def record(outcome: Outcome | None) -> None:
        run.write_record(
            run_record(
                task,
                config,
                {"strengths": list(STRENGTHS)},
                parameters=count_parameters(model),
                seed=seed,
                processes=1,
                seconds=time.monotonic() - begin,
                tokens=int(np.asarray(task.train.lengths).sum()),
                validations=[line for line in run.lines() if line["kind"] == "validation"],
                outcome=outcome,
            )
        )

    record(None)
    with display:
        display.begin(None, None, task.metric)
        train, validation = (_counted(model, task.splits[name], name, display) for name in ("train", "validation"))
        labels = np.asarray(task.train.targets)
        if len(np.unique(labels)) < task.outputs:
            raise ValueError(f"only {len(np.unique(labels))} of {task.outputs} classes are in train; nothing to learn")
        best: float | None = None
        step = chosen = 0
        for strength in STRENGTHS:
            step += 1
            weight, bias = _solved(train, labels, strength, display, step)
            candidate = Ngrams(config)
            candidate.set_weights(weight, bias)
            found = measured(_answers(candidate, validation), _targets(task.validation), task.metric)
            better = METRICS[task.metric].better(found[task.metric], best)
            run.add_line(
                {"kind": "validation", "step": step, "epoch": 0, "strength": strength, **found, "best": better}
                | {"seconds": time.monotonic() - begin}
            )
            if better:
                best, chosen = found[task.metric], step
                model = candidate
        if best is None:
            raise ValueError(f"no fit gave a {task.metric}; is validation of one class only?")
        pretrained.save_model(model, config, run.model)
        write_inputs(run.model, task)
        test = measured(_answers(model, _counted(model, task.test, "test", display)), _targets(task.test), task.metric)
        outcome = Outcome(task.metric, best, test, step, chosen, "all strengths were tried")
        record(outcome)
        display.finished(outcome)
    return outcome


def _counted(model: Ngrams, split: Sequences, name: str, display: Display) -> csr_matrix:
    from scipy.sparse import vstack

    tick = display.evaluating(f"counting {name}", len(split))
    parts = []
    for start in range(0, len(split), _TOGETHER):
        items = split.__getitems__(list(range(start, min(start + _TOGETHER, len(split)))))
        parts.append(model.counts([item.inputs.numpy() for item in items]))
        tick(len(items))
    return vstack(parts, format="csr")


def _solved(train: csr_matrix, labels: Any, strength: float, display: Display, step: int) -> tuple[Any, Any]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    display.evaluating(f"fitting {step} of {len(STRENGTHS)}", train.shape[0])
    # Most columns are of grams that never occur; their weights stay zero.
    used = np.unique(train.indices)
    with warnings.catch_warnings():
        # After so many rounds it is as good on validation as it will be.
        warnings.simplefilter("ignore", ConvergenceWarning)
        solved = LogisticRegression(C=strength, max_iter=200).fit(train[:, used], labels)
    weight = np.zeros((len(solved.coef_), train.shape[1]), np.float32)
    weight[:, used] = solved.coef_
    return weight, solved.intercept_


def _answers(model: Ngrams, counted: csr_matrix) -> Tensor:
    logits = counted @ model.weight.detach().numpy().T
    return torch.from_numpy(np.ascontiguousarray(logits)) + model.bias.detach()


def _targets(split: Sequences) -> Tensor:
    return torch.from_numpy(np.asarray(split.targets).astype(np.int64))
