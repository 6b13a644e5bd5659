"""The record of a run, whichever system it trained."""

from __future__ import annotations

import resource
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from paramixer import machine
from paramixer.data.task import Task
from paramixer.nn.config import SequenceConfig
from paramixer.training.assessment.baseline import Baseline
from paramixer.training.assessment.intervals import Interval


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    metric: str
    """The task's metric."""
    validation: float
    """The best metric on validation, by which the model was chosen."""
    test: dict[str, float]
    """Metric and loss of that model on test; empty where test was not evaluated."""
    steps: int
    """Optimizer steps taken."""
    best_step: int
    """The step of the model."""
    stopped: str
    """Why training ended."""
    intervals: dict[str, Interval] = field(default_factory=dict)
    """The 95 % interval of every metric on test."""
    verdict: str = ""
    """The result in words, beside the baseline; empty where test was not evaluated."""
    temperature: float = 1.0
    """What the model's logits were divided by in the end, so that they are as sure as they are right."""


def build_record(
    task: Task,
    config: SequenceConfig,
    settings: dict[str, Any],
    *,
    parameters: int,
    seed: int,
    processes: int,
    seconds: float,
    tokens: int,
    validations: list[dict[str, Any]],
    outcome: Outcome | None,
    baseline: Baseline | None = None,
    device: torch.device | None = None,
) -> dict[str, Any]:
    """Return the document of record.json; without an outcome the run is not finished.

    Args:
        task: the data.
        config: of the model.
        settings: recipe, init and training of the run.
        parameters: how many the model has.
        seed: of the run.
        processes: how many train.
        seconds: spent training.
        tokens: positions seen.
        validations: the lines of all evaluations.
        outcome: the result.
        baseline: the simple model's results.
        device: that trains, by default the CPU.
    """
    return {
        "finished": outcome is not None,
        "task": task.name,
        "fingerprint": task.fingerprint,
        "preset": task.preset,
        "settings": task.settings,
        "system": getattr(config, "model", "paramixer"),
        "model": asdict(config),
        "parameters": parameters,
        # The accuracy of always predicting the largest class.
        "majority": _majority_share(task),
        **({"baseline": baseline.document()} if baseline is not None else {}),
        **settings,
        "seed": seed,
        "processes": processes,
        "engine": machine.serving_backend(device),
        "commit": machine.commit(),
        "machine": machine.describe_machine(),
        "seconds": seconds,
        "tokens": tokens,
        "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "epochs": validations,
        **(asdict(outcome) if outcome else {}),
    }


def _majority_share(task: Task) -> float | None:
    if task.target != "class" or not len(task.test):
        return None
    return float(np.bincount(np.asarray(task.test.targets)).max() / len(task.test))
