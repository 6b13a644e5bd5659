"""Time and memory of every rival's layer against a Paramixer block of as many parameters, from short to long.

How much memory a layer takes, and whether it comes to an end, is found out in a process of its own, since it may not
survive: ``python -m paramixer.bench.models JOB``. What survived is then timed here, all systems taking turns.
"""

# No postponed annotations here: the command line reads the fields' types.
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

from paramixer.baselines import registry, sizing
from paramixer.bench import verify
from paramixer.bench.case import Case
from paramixer.bench.memory import status
from paramixer.bench.progress import Say
from paramixer.bench.settings import Settings
from paramixer.bench.timing import Timing, interleaved
from paramixer.bench.ways import engine
from paramixer.machine import serving_engine
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.model import blocks


@dataclass(frozen=True, kw_only=True)
class ModelsBenchOptions(Settings):
    """Time and memory of every rival's layer against a Paramixer block of as many parameters."""

    lengths: str = "256..65536"
    """The shortest and the longest sequence; doubled in between."""
    batch: int = 1
    """Sequences a batch."""
    channels: int = 32
    """Width of the values."""
    hidden: int = 32
    """Width of the hidden layers of Paramixer's link MLPs; rivals are sized to its parameters."""
    models: tuple[str, ...] = ()
    """Only these rivals; none for all that are installed."""
    limit: float = 10.0
    """Seconds: a system that takes longer for one pass forward and back goes no further."""
    memory: float = 12.0
    """GB: a system that needs more goes no further."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("batch", "channels", "hidden", "limit", "memory"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}={getattr(self, name)}; it must be positive")
        for name in self.models:
            if registry.baseline(name).linear:
                raise ValueError(f"{name} has no layer to measure")
        self.span()

    def span(self) -> list[int]:
        """Every length."""
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
    """What the process of one system is to do."""

    name: str
    lengths: tuple[int, ...]
    batch: int
    channels: int
    hidden: int
    limit: float
    memory: float
    threads: int


def measure(options: ModelsBenchOptions, say: Say) -> dict[str, Any]:
    """Peak memory of every system alone, then times of all that were up to it, as ratios to Paramixer."""
    lengths = [16, 32] if options.quick else options.span()
    installed = [name for name, found in registry.BASELINES.items() if not found.linear and not found.missing]
    names = [registry.OWN, *(options.models or installed)]
    for name in options.models:
        registry.baseline(name).check()
    _verify(lengths[0], options, say)
    found = {}
    for name in names:
        say(f"{name}: memory")
        job = Job(
            name=name,
            lengths=tuple(lengths),
            batch=options.batch,
            channels=options.channels,
            hidden=options.hidden,
            limit=options.limit,
            memory=options.memory,
            threads=torch.get_num_threads(),
        )
        found[name] = _alone(job, say)
    for place, length in enumerate(lengths):
        able = [name for name in names if len(found[name]["peak"]) > place]
        timings = _timed(able, length, options, say)
        for name in able:
            system = found[name]
            system["seconds"].append(timings[name].seconds)
            system["times"].append(timings[name].times(timings[registry.OWN]))
    return {"lengths": lengths, "batch": options.batch, "channels": options.channels, "models": found}


def config_of(name: str, length: int, channels: int, hidden: int) -> ParamixerConfig:
    """A Paramixer of one block, or a rival with as many parameters in its layer."""
    own = ParamixerConfig(length=length, features=1, outputs=1, channels=channels, hidden=hidden, init="identity")
    if name == registry.OWN:
        return own
    rival = ParamixerConfig(length=length, features=1, outputs=1, channels=channels, hidden=hidden, mixer=name)
    return sizing.matched(rival, _count(own), _count)


def _count(config: ParamixerConfig) -> int:
    (layer,) = blocks(config, torch.Generator())
    return sum(parameter.numel() for parameter in layer.parameters() if parameter.requires_grad)


def _pass(config: ParamixerConfig, batch: int) -> Callable[[], None]:
    """Forward and back to the gradients of values and parameters."""
    (layer,) = blocks(config, torch.Generator().manual_seed(0))
    values = torch.randn(batch, config.length, config.channels, requires_grad=True)
    upstream = torch.randn(batch, config.length, config.channels)

    def both() -> None:
        layer.zero_grad()
        values.grad = None
        out: Tensor = layer(values, values, None)
        torch.autograd.backward(out, upstream)

    def checked() -> None:
        both()
        _finite(layer, values)

    checked()
    return both


def _finite(layer: nn.Module, values: Tensor) -> None:
    gradients = [values.grad, *(parameter.grad for parameter in layer.parameters() if parameter.requires_grad)]
    if not all(gradient is not None and bool(gradient.isfinite().all()) for gradient in gradients):
        raise ArithmeticError("a gradient is missing or not finite")


def _verify(length: int, options: ModelsBenchOptions, say: Say) -> None:
    say("verifying Paramixer")
    case = Case(batch=1, length=length, channels=options.channels, hidden=options.hidden)
    tensors = case.tensors()
    why = verify.complaint(verify.errors(engine(case), case, tensors, verify.truth(case, tensors)))
    if why is not None:
        raise ArithmeticError(f"the engine {serving_engine()} is {why}; its times mean nothing")


def _timed(names: list[str], length: int, options: ModelsBenchOptions, say: Say) -> dict[str, Timing]:
    runs: dict[str, Callable[[], object]] = {}
    for name in names:
        say(f"N = {length}, {name}: building")
        runs[name] = _pass(config_of(name, length, options.channels, options.hidden), options.batch)
    return interleaved(runs, options.turns, lambda text: say(f"N = {length}, {text}"))


def _alone(job: Job, say: Say) -> dict[str, Any]:
    """What a process of its own found: parameters and peaks of every length it came to, and why it went no further."""
    title = "Paramixer" if job.name == registry.OWN else registry.baseline(job.name).title
    found: dict[str, Any] = {"title": title, "parameters": [], "peak": [], "seconds": [], "times": [], "stopped": None}
    command = [sys.executable, "-m", "paramixer.bench.models", json.dumps(asdict(job))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            news = json.loads(line)
            if "stopped" in news:
                found["stopped"] = news["stopped"]
            else:
                say(f"{job.name}: memory at N = {news['length']}")
                found["parameters"].append(news["parameters"])
                found["peak"].append(news["peak"])
        _, errors = process.communicate()
    if process.returncode != 0:
        last = errors.strip().splitlines()[-1:] or ["killed, out of memory"]
        found["stopped"] = last[0] if process.returncode > 0 else "killed, out of memory"
    return found


def _work(job: Job) -> None:
    for news in _climbed(job):
        print(json.dumps(news), flush=True)


def _climbed(job: Job) -> Iterator[dict[str, Any]]:
    torch.set_num_threads(job.threads)
    # Whatever is loaded or allocated once is the process's own.
    _pass(config_of(job.name, 16, job.channels, job.hidden), 1)()
    before = status("VmRSS")
    room = status("VmSize") + int(job.memory * 1e9)
    resource.setrlimit(resource.RLIMIT_AS, (room, resource.getrlimit(resource.RLIMIT_AS)[1]))
    for length in job.lengths:
        config = config_of(job.name, length, job.channels, job.hidden)
        gc.collect()
        begin = time.perf_counter()
        try:
            _pass(config, job.batch)
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "memory" not in str(error):
                raise
            yield {"stopped": f"out of {job.memory:g} GB at N = {length}"}
            return
        taken = time.perf_counter() - begin
        # Lengths only grow, and so does what they need: the highest mark so far is this one's.
        news = {"length": length, "parameters": _count(config), "peak": status("VmHWM") - before}
        yield news
        if taken > job.limit:
            yield {"stopped": f"more than {job.limit:g} s at N = {length}"}
            return


if __name__ == "__main__":
    _work(Job(**json.loads(sys.argv[1])))
