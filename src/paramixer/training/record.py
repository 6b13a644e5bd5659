"""What is written down about a run, whichever model it trained."""

from __future__ import annotations

import resource
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paramixer import machine
from paramixer.data.task import Task
from paramixer.nn.config import ParamixerConfig


@dataclass(frozen=True)
class Outcome:
    """What came out of a run."""

    metric: str
    """How it is judged."""
    validation: float
    """The best metric on validation, by which the model was chosen."""
    test: dict[str, float]
    """Metric and loss of that model on test; empty where that was not looked at."""
    steps: int
    """Optimizer steps taken."""
    best_step: int
    """The step of the model."""
    stopped: str
    """Why training ended."""


def run_record(
    task: Task,
    config: ParamixerConfig,
    training: dict[str, Any],
    *,
    parameters: int,
    seed: int,
    processes: int,
    seconds: float,
    tokens: int,
    validations: list[dict[str, Any]],
    outcome: Outcome | None,
) -> dict[str, Any]:
    """The document of record.json; without an outcome the run is still under way."""
    return {
        "finished": outcome is not None,
        "task": task.name,
        "fingerprint": task.fingerprint,
        "preset": task.preset,
        "settings": task.settings,
        "model": asdict(config),
        "parameters": parameters,
        # What a model would reach that always says the same.
        "majority": _majority(task),
        "training": training,
        "seed": seed,
        "processes": processes,
        "engine": machine.serving_engine(),
        "commit": machine.commit(),
        "machine": machine.machine(),
        "seconds": seconds,
        "tokens": tokens,
        "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "epochs": validations,
        **(asdict(outcome) if outcome else {}),
    }


def _majority(task: Task) -> float | None:
    if task.target != "class" or not len(task.test):
        return None
    return float(np.bincount(np.asarray(task.test.targets)).max() / len(task.test))
