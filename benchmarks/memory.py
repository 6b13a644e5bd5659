"""Peak resident memory, on a GPU that of its tensors, each measurement in a fresh process of its own.

``python -m benchmarks.memory JOB`` is that process: it does one job and prints two numbers.
"""

# No postponed annotations: the command line reads the fields' types.
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

from benchmarks.block import case_of
from benchmarks.settings import Settings
from paramixer.bench import cost
from paramixer.bench.case import Case
from paramixer.bench.device import measured_device, use_device
from paramixer.bench.status import Notify
from paramixer.machine import serving_backend
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.model import Paramixer
from paramixer.ops import paramix

# Where ``python -m benchmarks`` finds this package.
ROOT = Path(__file__).parents[1]
_LONG = Case(batch=1, length=2**20)
# Beside the chain a network holds its embedding, positions and head, their gradients and Adam's two moments of each.
_SHARE_OF_CHAIN = 0.5


@dataclass(frozen=True, kw_only=True)
class MemoryOptions(Case, Settings):
    """Peak resident memory of a forward pass and of a training step, each in a fresh process."""

    checkpoint_every: tuple[int, ...] = (1, 2, 4)
    """Keep the input of every so many factors for the backward pass; one measurement each."""
    budget: float = 6.0
    """GB for the training step of a whole network at N = 2^20; its checkpoint_every is chosen for it."""

    def __post_init__(self) -> None:
        Case.__post_init__(self)
        Settings.__post_init__(self)
        if not self.checkpoint_every or min(self.checkpoint_every) < 1:
            raise ValueError(f"checkpoint_every={list(self.checkpoint_every)}; give whole numbers from 1")
        if self.budget <= 0:
            raise ValueError(f"budget={self.budget}; it must be positive")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One measurement of a fresh process."""

    what: Literal["forward", "training", "network forward", "network training"]
    case: Case
    checkpoint_every: int = 1
    threads: int | None = None
    device: str = "cpu"


def measure_peak(job: Job) -> dict[str, int]:
    """Return the peak resident bytes of a process that does the job, and what it had before it began."""
    document = {**asdict(job), "case": asdict(job.case)}
    command = [sys.executable, "-m", "benchmarks.memory", json.dumps(document)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}; was it out of memory?"]
        raise ChildProcessError(f"{job.what} of {job.case} failed in its process: {last[0]}")
    peaks: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return peaks


def measure(options: MemoryOptions, notify: Notify) -> dict[str, Any]:
    """Return forward and training peaks of the case, and of a whole network at N = 2^20 with a batch of one."""
    case = case_of(options, options.quick, shortest=256)
    backend = serving_backend(measured_device())
    notify(f"{case}: forward")
    rows = [
        _measure_row(
            Job(what="forward", case=case, threads=options.threads, device=options.device),
            cost.forward_memory(case, backend),
        )
    ]
    for every in options.checkpoint_every:
        notify(f"{case}: training, checkpoint every {every}")
        job = Job(what="training", case=case, checkpoint_every=every, threads=options.threads, device=options.device)
        rows.append(_measure_row(job, cost.training_memory(case, backend, every)))
    network = measure_network(options, options.budget, notify)
    return {"case": str(case), "engine": backend, "chain": rows, "long": network}


def measure_network(settings: Settings, budget: float, notify: Notify) -> dict[str, Any]:
    """Return the peaks of a network at N = 2^20, batch 1: a forward pass, and a training step within the budget."""
    case = dataclasses.replace(_LONG, length=256) if settings.quick else _LONG
    every = cost.choose_checkpoint_every(case, serving_backend(measured_device()), int(_SHARE_OF_CHAIN * budget * 1e9))
    notify(f"network, {case}: forward")
    forward = _measure_row(Job(what="network forward", case=case, threads=settings.threads, device=settings.device))
    notify(f"network, {case}: training, checkpoint every {every}")
    job = Job(
        what="network training", case=case, checkpoint_every=every, threads=settings.threads, device=settings.device
    )
    return {"case": str(case), "forward": forward, "training": _measure_row(job)}


def _measure_row(job: Job, predicted: int | None = None) -> dict[str, Any]:
    peaks = measure_peak(job)
    return {
        "what": job.what,
        "keep": job.checkpoint_every if "training" in job.what else None,
        "peak": peaks["peak"],
        "beyond": peaks["peak"] - peaks["before"],
        "predicted": predicted,
    }


def _run_job(job: Job) -> None:
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    with use_device(job.device):
        _run_on_device(job)


def _run_on_device(job: Job) -> None:
    # Whatever torch and the backend load or allocate once is the process's own, not the job's.
    _JOBS[job.what](dataclasses.replace(job, case=dataclasses.replace(job.case, batch=1, length=64)))
    if job.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        _JOBS[job.what](job)
        print(json.dumps({"before": before, "peak": torch.cuda.max_memory_allocated()}))
        return
    before = read_status("VmRSS")
    _JOBS[job.what](job)
    print(json.dumps({"before": before, "peak": read_status("VmHWM")}))


def _forward(job: Job) -> None:
    with torch.no_grad():
        paramix(*job.case.tensors(), job.case.offsets())


def _training(job: Job) -> None:
    output = paramix(*job.case.tensors(), job.case.offsets(), checkpoint_every=job.checkpoint_every)
    torch.autograd.backward(output, torch.ones_like(output))


def _build_network(job: Job) -> tuple[Paramixer, torch.Tensor]:
    case = job.case
    config = ParamixerConfig(
        layer="paper",
        length=case.length,
        features=2,
        outputs=1,
        target="value",
        channels=case.channels,
        hidden=case.hidden,
        protocol=case.protocol,
        links=case.links,
        factors=case.factors,
        checkpoint_every=job.checkpoint_every,
    )
    device = measured_device()
    return Paramixer(config, init="identity").to(device), torch.rand(case.batch, case.length, 2, device=device)


def _network_forward(job: Job) -> None:
    model, inputs = _build_network(job)
    with torch.no_grad():
        model(inputs)


def _network_training(job: Job) -> None:
    model, inputs = _build_network(job)
    optimizer = torch.optim.Adam(model.parameters())
    loss = F.mse_loss(model(inputs), torch.zeros(job.case.batch, device=measured_device()))
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


def read_status(name: str) -> int:
    """Return the bytes that Linux counts under this name; getrusage would inherit its peak from the parent process."""
    line = re.search(rf"^{name}:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if line is None:
        raise OSError(f"/proc/self/status does not have {name}; resident memory is measured on Linux only")
    return int(line[1]) * 1024


if __name__ == "__main__":
    _document = json.loads(sys.argv[1])
    _run_job(Job(**{**_document, "case": Case(**_document["case"])}))
