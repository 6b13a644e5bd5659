"""Peak resident memory, each measurement in a fresh process of its own.

``python -m paramixer.bench.memory JOB`` is that process: it does one job and prints two numbers.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F

from paramixer.bench import cost
from paramixer.bench.case import Case
from paramixer.bench.progress import Say
from paramixer.bench.settings import Settings
from paramixer.machine import serving_engine
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.model import Paramixer
from paramixer.ops import paramix

_LONG = Case(batch=1, length=2**20)
# Beside the chain a network holds its embedding, positions and head, their gradients and Adam's two moments of each.
_SHARE_OF_CHAIN = 0.5


@dataclass(frozen=True, kw_only=True)
class MemoryOptions(Case, Settings):
    """Peak resident memory of a forward pass and of a training step, each in a fresh process."""

    keep: tuple[int, ...] = (1, 2, 4)
    """Keep every so many factors' inputs for the backward pass; one measurement each."""
    budget: float = 6.0
    """GB that the training step of a whole network at N = 2^20 may take; its keep is chosen for it."""

    def __post_init__(self) -> None:
        Case.__post_init__(self)
        Settings.__post_init__(self)
        if not self.keep or min(self.keep) < 1:
            raise ValueError(f"keep={list(self.keep)}; give whole numbers from 1")
        if self.budget <= 0:
            raise ValueError(f"budget={self.budget}; it must be positive")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What the fresh process is to do."""

    what: Literal["forward", "training", "network forward", "network training"]
    case: Case
    keep: int = 1
    threads: int | None = None


def peak(job: Job) -> dict[str, int]:
    """Peak resident bytes of a process that does the job, and what it had before it began."""
    document = {**asdict(job), "case": asdict(job.case)}
    command = [sys.executable, "-m", "paramixer.bench.memory", json.dumps(document)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}; was it out of memory?"]
        raise ChildProcessError(f"{job.what} of {job.case} failed in its process: {last[0]}")
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(options: MemoryOptions, say: Say) -> dict[str, Any]:
    """Forward and training peaks of the case, and of a whole network at N = 2^20 with a batch of one."""
    case = Case(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Case)})
    if options.quick:
        case = dataclasses.replace(case, batch=1, length=min(case.length, 256))
    engine = serving_engine()
    say(f"{case}: forward")
    found = {"case": str(case), "engine": engine}
    rows = [_row(Job(what="forward", case=case, threads=options.threads), cost.forward_memory(case, engine))]
    for keep in options.keep:
        say(f"{case}: training, keep = {keep}")
        job = Job(what="training", case=case, keep=keep, threads=options.threads)
        rows.append(_row(job, cost.training_memory(case, engine, keep)))
    return {**found, "chain": rows, "long": long(options, options.budget, say)}


def long(settings: Settings, budget: float, say: Say) -> dict[str, Any]:
    """A whole network at N = 2^20, batch 1: peak of a forward pass and of a training step with a chosen keep."""
    case = dataclasses.replace(_LONG, length=256) if settings.quick else _LONG
    keep = cost.choose_keep(case, serving_engine(), int(_SHARE_OF_CHAIN * budget * 1e9))
    say(f"network, {case}: forward")
    forward = _row(Job(what="network forward", case=case, threads=settings.threads))
    say(f"network, {case}: training, keep = {keep}")
    training = _row(Job(what="network training", case=case, keep=keep, threads=settings.threads))
    return {"case": str(case), "forward": forward, "training": training}


def _row(job: Job, predicted: int | None = None) -> dict[str, Any]:
    found = peak(job)
    return {
        "what": job.what,
        "keep": job.keep if "training" in job.what else None,
        "peak": found["peak"],
        "beyond": found["peak"] - found["before"],
        "predicted": predicted,
    }


def _work(job: Job) -> None:
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    # Whatever torch and the engine load or allocate once is the process's own, not the job's.
    _JOBS[job.what](dataclasses.replace(job, case=dataclasses.replace(job.case, batch=1, length=64)))
    before = status("VmRSS")
    _JOBS[job.what](job)
    print(json.dumps({"before": before, "peak": status("VmHWM")}))


def _forward(job: Job) -> None:
    with torch.no_grad():
        paramix(*job.case.tensors(), job.case.offsets())


def _training(job: Job) -> None:
    output = paramix(*job.case.tensors(), job.case.offsets(), keep=job.keep)
    torch.autograd.backward(output, torch.ones_like(output))


def _network(job: Job) -> tuple[Paramixer, torch.Tensor]:
    case = job.case
    config = ParamixerConfig(
        length=case.length,
        features=2,
        outputs=1,
        target="value",
        channels=case.channels,
        hidden=case.hidden,
        protocol=case.protocol,
        links=case.links,
        factors=case.factors,
        init="identity",
        keep=job.keep,
    )
    return Paramixer(config), torch.rand(case.batch, case.length, 2)


def _network_forward(job: Job) -> None:
    model, inputs = _network(job)
    with torch.no_grad():
        model(inputs)


def _network_training(job: Job) -> None:
    model, inputs = _network(job)
    optimizer = torch.optim.Adam(model.parameters())
    loss = F.mse_loss(model(inputs), torch.zeros(job.case.batch))
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    if not loss.isfinite():
        raise ArithmeticError(f"the loss is {float(loss)}")


_JOBS: dict[str, Callable[[Job], None]] = {
    "forward": _forward,
    "training": _training,
    "network forward": _network_forward,
    "network training": _network_training,
}


def status(name: str) -> int:
    """Bytes that Linux counts under this name; getrusage's peak would be inherited from whoever started us."""
    found = re.search(rf"^{name}:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"/proc/self/status does not tell {name}; resident memory is measured on Linux only")
    return int(found[1]) * 1024


if __name__ == "__main__":
    _document = json.loads(sys.argv[1])
    _work(Job(**{**_document, "case": Case(**_document["case"])}))
