"""How much of the training loop is spent in forward pass, backward pass and optimizer."""

# No postponed annotations: the command line reads the fields' types.
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.settings import Settings
from paramixer.bench.status import Notify
from paramixer.data.rng import draw_bits
from paramixer.data.samples import Row
from paramixer.data.splits import SPLITS
from paramixer.data.storage.prepared import Preparation, open_prepared
from paramixer.data.task import Task, TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.training.device import use_device
from paramixer.training.factory import build_model
from paramixer.training.fit import fit
from paramixer.training.options import TrainingOptions
from paramixer.training.runs.folder import RunFolder

_SYMBOLS = 16


@dataclass(frozen=True, kw_only=True)
class LoopOptions(Settings):
    """Train for a few steps on prepared data; returns how much of the time the model took."""

    preset: str = "listops"
    """Which preset's model; with a cheap one the loop weighs more."""
    length: int = 4096
    """N."""
    batch: int = 40
    """Batch size."""


def measure(options: LoopOptions, notify: Notify) -> dict[str, Any]:
    """Return the share of the model in each step; the first steps warm up."""
    length, batch = (64, 4) if options.quick else (options.length, options.batch)
    steps = 3 + options.turns * 2
    with tempfile.TemporaryDirectory() as folder, use_device(options.device):
        notify("preparing data")
        task = _prepare_task(Path(folder), options.preset, length, steps * batch)
        model = build_model(task)
        notify(f"training {steps} steps")
        start = time.perf_counter()
        training = TrainingOptions(steps=steps, batch=batch, log_every=1)
        fit(model, task, training, folder=Path(folder) / "run")
        seconds = time.perf_counter() - start
        lines = [line for line in RunFolder(Path(folder) / "run").read_lines() if line["kind"] == "train"][3:]
    return {
        "preset": options.preset,
        "length": length,
        "batch": batch,
        "seconds": seconds,
        "busy": statistics.median(line["busy"] for line in lines),
        "lowest": min(line["busy"] for line in lines),
    }


def _prepare_task(folder: Path, preset: str, length: int, count: int) -> Task:
    """Write random sequences to the storage and open them as a task."""
    (folder / "data").mkdir()
    preparation = Preparation(folder / "data")
    sizes = {"train": count, "validation": 8, "test": 8}

    def rows() -> Iterator[tuple[str, Row]]:
        for split in SPLITS:
            for index in range(sizes[split]):
                words = draw_bits(length // 8 + 1, 0, split, index)
                tokens = words.view(np.uint8)[:length] % _SYMBOLS
                yield split, Row(tokens, float(index % 2), length)

    preparation.write(rows(), "uint8")
    vocabulary = Vocabulary(symbols=tuple(map(str, range(_SYMBOLS))), unit="number")
    info = TaskInfo(
        name="random",
        preset=preset,
        metric="accuracy",
        target="class",
        length=length,
        classes=("even", "odd"),
        vocabulary=vocabulary,
    )
    preparation.finish(info)
    return open_prepared(folder / "data")
