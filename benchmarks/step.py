"""Where a training step goes: each preset's whole step, by torch's profiler, split by the names of the ops."""

# No postponed annotations: the command line reads the fields' types.
import dataclasses
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._C._autograd import DeviceType
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.settings import Settings
from paramixer.bench.device import measured_device, synchronize
from paramixer.bench.status import Notify
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.model import Paramixer
from paramixer.recipes import PRESETS, preset, read_recipe

_STEP, _OPTIMIZER = "training step", "optimizer"
# The outermost op of one of these names decides which part its time belongs to.
_PARTS = {
    "paramixer::paramix": "paramix",
    "paramixer::mlp": "mlp",
    "paramixer::lookup": "lookup",
    "paramixer::dropout": "dropout",
    "aten::linear": "linear",
    "AddmmBackward0": "linear",
    "MmBackward0": "linear",
    "aten::cross_entropy_loss": "loss",
    "aten::mse_loss": "loss",
    "NllLossBackward0": "loss",
    "LogSoftmaxBackward0": "loss",
    "MseLossBackward0": "loss",
    _OPTIMIZER: _OPTIMIZER,
}
_REST = "rest"
_BACKWARD = "autograd::engine::evaluate_function"
PARTS = (*dict.fromkeys(_PARTS.values()), _REST)
PHASES = ("forward", "backward")


@dataclass(frozen=True, kw_only=True)
class StepOptions(Settings):
    """Time the whole training step of each preset, and split it by op."""

    presets: tuple[str, ...] = PRESETS
    """Which presets to train."""
    batch: int | None = None
    """Batch size; the paper's if not given."""
    length: int | None = None
    """N; the preset's own if not given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.presets:
            preset(name)
        if self.batch is not None and self.batch < 1:
            raise ValueError(f"batch={self.batch}; it must be at least 1")


def measure(options: StepOptions, notify: Notify) -> dict[str, Any]:
    """Return seconds per step and their shares, preset by preset."""
    steps = {}
    for name in options.presets:
        recipe = read_recipe("paper", name).training
        length, batch = options.length, options.batch or recipe["batch"]
        if options.quick:
            length, batch = 64, 2
        notify(f"{name}: batch size {batch}")
        steps[name] = profile_step(preset(name, length=length), batch, recipe["clip"], options.turns)
    return {"presets": steps}


def profile_step(config: ParamixerConfig, batch: int, clip: float, repeats: int) -> dict[str, Any]:
    """Return the median seconds of a training step, and the share of each part as the profiler sees it."""
    step = _build_step(config, batch, clip)
    step()
    seconds = statistics.median(_time(step) for _ in range(repeats))
    on_gpu = measured_device().type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as profiler:
        for _ in range(repeats):
            with record_function(_STEP):
                step()
        synchronize()
    shares = split_device_time(profiler.events() or []) if on_gpu else split_by_part(profiler.events() or [])
    return {
        "batch": batch,
        "length": config.length,
        "config": dataclasses.asdict(config),
        "seconds": seconds,
        "shares": shares,
        "outside_paramix": 1 - sum(shares["paramix"].values()),
    }


def split_by_part(events: Iterable[FunctionEvent]) -> dict[str, dict[str, float]]:
    """Return the share of the steps' time by part and phase; what no part claims is the rest's."""
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    total = 0.0
    for event in events:
        if event.name == _STEP:
            total += event.cpu_time_total
        elif (part := _part_of(event)) is not None and not _is_within_part(event):
            seconds[part, _phase_of(event)] += event.cpu_time_total
    shares = {part: {phase: seconds[part, phase] / total for phase in PHASES} for part in PARTS}
    shares[_REST]["forward"] = 1 - sum(seconds.values()) / total
    return shares


def split_device_time(events: Iterable[FunctionEvent]) -> dict[str, dict[str, float]]:
    """Return the same of the time that a GPU computes: an event has that of the kernels it started."""
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    total = 0.0
    for event in events:
        total += event.self_device_time_total if event.device_type == DeviceType.CPU else 0.0
        if event.device_type == DeviceType.CPU and _part_of(event) is not None and not _is_within_part(event):
            seconds[str(_part_of(event)), _phase_of(event)] += event.device_time_total
    shares = {part: {phase: seconds[part, phase] / total for phase in PHASES} for part in PARTS}
    shares[_REST]["forward"] = 1 - sum(seconds.values()) / total
    return shares


def _part_of(event: FunctionEvent) -> str | None:
    return _PARTS.get(event.name.removesuffix("_backward"))


def _phase_of(event: FunctionEvent) -> str:
    is_backward = any(ancestor.name.startswith(_BACKWARD) for ancestor in _ancestors(event))
    return "backward" if is_backward else "forward"


def _is_within_part(event: FunctionEvent) -> bool:
    return any(_part_of(ancestor) is not None for ancestor in _ancestors(event))


def _ancestors(event: FunctionEvent) -> Iterable[FunctionEvent]:
    ancestor = event.cpu_parent
    while ancestor is not None:
        yield ancestor
        ancestor = ancestor.cpu_parent


def _build_step(config: ParamixerConfig, batch: int, clip: float) -> Callable[[], None]:
    """Return a training step of a new model on random data."""
    generator = torch.Generator().manual_seed(0)
    device = measured_device()
    model = Paramixer(config, generator=generator).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    inputs, targets = (tensor.to(device) for tensor in _draw_data(config, batch, generator))
    loss_of = F.cross_entropy if config.target == "class" else F.mse_loss

    def step() -> None:
        loss: Tensor = loss_of(model(inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        with record_function(_OPTIMIZER):
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            optimizer.zero_grad()

    return step


def _time(step: Callable[[], None]) -> float:
    synchronize()
    start = time.perf_counter()
    step()
    synchronize()
    return time.perf_counter() - start


def _draw_data(config: ParamixerConfig, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    if config.vocabulary is not None:
        inputs = torch.randint(config.vocabulary, (batch, config.length), generator=generator)
    else:
        inputs = torch.rand(batch, config.length, config.features or 1, generator=generator)
    if config.target == "class":
        return inputs, torch.randint(config.outputs, (batch,), generator=generator)
    return inputs, torch.rand(batch, generator=generator)
