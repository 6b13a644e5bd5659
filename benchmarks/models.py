"""Time and memory of every baseline's layer against a Paramixer block of as many parameters, from short to long.

How much memory a layer takes is measured in a process of its own, since it may not survive: ``python -m
benchmarks.models JOB``. What survived is then timed here, all models taking turns.
"""

# No postponed annotations: the command line reads the fields' types.
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.memory import ROOT, read_status
from benchmarks.settings import Settings
from paramixer.baselines import registry
from paramixer.bench.case import Case
from paramixer.bench.device import measured_device, use_device
from paramixer.bench.implementations import PARAMIXER, build_paramixer
from paramixer.bench.status import Notify, add_prefix
from paramixer.bench.timing import Timing, time_in_turns
from paramixer.bench.verification import verify
from paramixer.machine import serving_backend
from paramixer.nn.config import ParamixerConfig, SequenceConfig
from paramixer.nn.model import Paramixer
from paramixer.nn.sequence_model import SequenceModel


@dataclass(frozen=True, kw_only=True)
class ModelsOptions(Settings):
    """Time and memory of every baseline's layer against a Paramixer block of as many parameters."""

    lengths: str = "256..65536"
    """The shortest and the longest sequence; doubled in between."""
    batch: int = 1
    """Batch size."""
    channels: int = 32
    """Width of the values."""
    hidden: int = 32
    """Width of the hidden layers of Paramixer's link MLPs; baselines are sized to its parameters."""
    models: tuple[str, ...] = ()
    """Only these baselines; all installed ones if not given."""
    limit: float = 10.0
    """Seconds: a model whose forward and backward pass takes longer goes no further."""
    memory: float = 12.0
    """GB: a model that needs more goes no further."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("batch", "channels", "hidden", "limit", "memory"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}={getattr(self, name)}; it must be positive")
        for name in self.models:
            if registry.get(name).closed_form:
                raise ValueError(f"{name} has no layer to measure")
        self.each_length()

    def each_length(self) -> list[int]:
        """Return every length, doubled from the shortest on."""
        first, _, last = self.lengths.partition("..")
        try:
            shortest, longest = int(first), int(last or first)
        except ValueError:
            raise ValueError(f"lengths={self.lengths!r}; write SHORTEST..LONGEST, such as 256..65536") from None
        if not 2 <= shortest <= longest:
            raise ValueError(f"lengths={self.lengths!r}; give 2 <= shortest <= longest")
        return [shortest << power for power in range((longest // shortest).bit_length())]


@dataclass(frozen=True, kw_only=True)
class Job:
    """The measurement of one model in a process of its own."""

    name: str
    lengths: tuple[int, ...]
    batch: int
    channels: int
    hidden: int
    limit: float
    memory: float
    threads: int
    device: str = "cpu"


def measure(options: ModelsOptions, notify: Notify) -> dict[str, Any]:
    """Return the peak memory of every model alone, then times of those that fit, as ratios to Paramixer."""
    lengths = [16, 32] if options.quick else options.each_length()
    installed = [
        name for name, entry in registry.BASELINES.items() if not entry.closed_form and not entry.missing_packages
    ]
    names = [PARAMIXER, *(options.models or installed)]
    for name in options.models:
        registry.get(name).check_installed()
    _verify(lengths[0], options, notify)
    results = {}
    for name in names:
        notify(f"{name}: memory")
        job = Job(
            name=name,
            lengths=tuple(lengths),
            batch=options.batch,
            channels=options.channels,
            hidden=options.hidden,
            limit=options.limit,
            memory=options.memory,
            threads=torch.get_num_threads(),
            device=options.device,
        )
        results[name] = _measure_alone(job, notify)
    for place, length in enumerate(lengths):
        able = [name for name in names if len(results[name]["peak"]) > place]
        timings = _time_all(able, length, options, notify)
        for name in able:
            results[name]["seconds"].append(timings[name].seconds)
            results[name]["times"].append(timings[name].ratio_to(timings[PARAMIXER]))
    return {"lengths": lengths, "batch": options.batch, "channels": options.channels, "models": results}


def make_config(name: str, length: int, channels: int, hidden: int) -> SequenceConfig:
    """Return the config of one Paramixer block, or of a baseline with as many parameters in its layer."""
    # No positions and a small head: only the layer is measured.
    shared: dict[str, Any] = {
        "length": length,
        "features": 1,
        "outputs": 1,
        "channels": channels,
        "positions": False,
        "pooling": "mean",
    }
    paramixer = ParamixerConfig(layer="paper", **shared, hidden=hidden)
    if name == PARAMIXER:
        return paramixer
    baseline = registry.configure(name, paramixer, None, {"hidden": hidden})
    return registry.match_parameters(baseline, count_layer_parameters(paramixer), count_layer_parameters)


def count_layer_parameters(config: SequenceConfig) -> int:
    """Return the number of trainable parameters of a block or layer."""
    layer = _build_layer(config, torch.Generator())
    return sum(parameter.numel() for parameter in layer.parameters() if parameter.requires_grad)


def _build_layer(config: SequenceConfig, generator: torch.Generator) -> nn.Module:
    if isinstance(config, ParamixerConfig):
        # Chains close to the identity stay finite at every length.
        return Paramixer(config, init="identity", generator=generator).blocks[0]
    model = registry.build(config, generator)
    assert isinstance(model, SequenceModel)
    return model.blocks[0]


def _build_pass(config: SequenceConfig, batch: int) -> Callable[[], None]:
    """Return a forward and backward pass to the gradients of values and parameters, run once and checked."""
    device = measured_device()
    layer = _build_layer(config, torch.Generator().manual_seed(0)).to(device)
    values = torch.randn(batch, config.length, config.channels, device=device, requires_grad=True)
    upstream = torch.randn(batch, config.length, config.channels, device=device)

    def both() -> None:
        layer.zero_grad()
        values.grad = None
        out: Tensor = layer(values, values) if isinstance(config, ParamixerConfig) else layer(values)
        torch.autograd.backward(out, upstream)

    both()
    _check_finite(layer, values)
    return both


def _check_finite(layer: nn.Module, values: Tensor) -> None:
    gradients = [values.grad, *(parameter.grad for parameter in layer.parameters() if parameter.requires_grad)]
    if not all(gradient is not None and bool(gradient.isfinite().all()) for gradient in gradients):
        raise ArithmeticError("a gradient is missing or not finite")


def _verify(length: int, options: ModelsOptions, notify: Notify) -> None:
    notify("verifying Paramixer")
    case = Case(batch=1, length=length, channels=options.channels, hidden=options.hidden)
    why = verify(build_paramixer(case), case)
    if why is not None:
        raise ArithmeticError(f"the backend {serving_backend(measured_device())} is {why}; its times mean nothing")


def _time_all(names: list[str], length: int, options: ModelsOptions, notify: Notify) -> dict[str, Timing]:
    runs: dict[str, Callable[[], object]] = {}
    for name in names:
        notify(f"N = {length}, {name}: building")
        runs[name] = _build_pass(make_config(name, length, options.channels, options.hidden), options.batch)
    return time_in_turns(runs, options.turns, add_prefix(notify, f"N = {length}"))


def _measure_alone(job: Job, notify: Notify) -> dict[str, Any]:
    """Return parameters and peaks of every length that a process of its own reached, and why it stopped."""
    title = "Paramixer" if job.name == PARAMIXER else registry.get(job.name).title
    result: dict[str, Any] = {"title": title, "parameters": [], "peak": [], "seconds": [], "times": [], "stopped": None}
    command = [sys.executable, "-m", "benchmarks.models", json.dumps(asdict(job))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            message = json.loads(line)
            if "stopped" in message:
                result["stopped"] = message["stopped"]
            else:
                notify(f"{job.name}: memory at N = {message['length']}")
                result["parameters"].append(message["parameters"])
                result["peak"].append(message["peak"])
        _, errors = process.communicate()
    if process.returncode != 0:
        last = errors.strip().splitlines()[-1:] or ["killed, out of memory"]
        result["stopped"] = last[0] if process.returncode > 0 else "killed, out of memory"
    return result


def _run_job(job: Job) -> None:
    with use_device(job.device):
        for message in _measure_lengths(job):
            print(json.dumps(message), flush=True)


def _measure_lengths(job: Job) -> Iterator[dict[str, Any]]:
    torch.set_num_threads(job.threads)
    # Whatever is loaded or allocated once is the process's own.
    _build_pass(make_config(job.name, 16, job.channels, job.hidden), 1)()
    before = torch.cuda.memory_allocated() if job.device == "cuda" else read_status("VmRSS")
    _limit_memory(job)
    for length in job.lengths:
        config = make_config(job.name, length, job.channels, job.hidden)
        gc.collect()
        begin = time.perf_counter()
        try:
            _build_pass(config, job.batch)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "memory" not in str(error):
                raise
            yield {"stopped": f"out of {job.memory:g} GB at N = {length}"}
            return
        taken = time.perf_counter() - begin
        # Lengths only grow, and so does what they need: the highest mark so far is this one's.
        peak = torch.cuda.max_memory_allocated() if job.device == "cuda" else read_status("VmHWM")
        yield {"length": length, "parameters": count_layer_parameters(config), "peak": peak - before}
        if taken > job.limit:
            yield {"stopped": f"more than {job.limit:g} s at N = {length}"}
            return


def _limit_memory(job: Job) -> None:
    allowed = int(job.memory * 1e9)
    if job.device == "cuda":
        total = torch.cuda.get_device_properties().total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, allowed / total))
        return
    room = read_status("VmSize") + allowed
    resource.setrlimit(resource.RLIMIT_AS, (room, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    _run_job(Job(**json.loads(sys.argv[1])))
