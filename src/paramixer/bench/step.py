"""Where a training step goes: each preset's whole step, split by what the time is spent on.

Forward passes are clocked by hooks on the modules, backward passes by hooks on the nodes of the autograd graph. A node
belongs to the module during whose call it was made.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import Node

from paramixer.bench.progress import Say
from paramixer.bench.settings import Settings
from paramixer.nn.block import ParamixerBlock
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.model import Paramixer
from paramixer.recipes.presets import preset, recipe

PRESETS = (
    "image",
    "listops",
    "pathfinder",
    "text",
    "adding",
    "order",
    "documents-16k",
    "documents-32k",
    "hfdna",
    "mtcdna",
)
PARTS = ("embedding", "dropout", "g", "paramix", "head", "loss", "optimizer", "rest")


@dataclass(frozen=True, kw_only=True)
class StepOptions(Settings):
    """Time the whole training step of each preset, and say where it goes."""

    presets: tuple[str, ...] = PRESETS
    """Which presets to train."""
    batch: int | None = None
    """Sequences a step; None for the batch of the paper."""
    length: int | None = None
    """N; None for the preset's own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.presets:
            preset(name)
        if self.batch is not None and self.batch < 1:
            raise ValueError(f"batch={self.batch}; it must be at least 1")


def measure(options: StepOptions, say: Say) -> dict[str, Any]:
    """Seconds a step and their parts, preset by preset."""
    presets = {}
    for name in options.presets:
        length, batch = options.length, options.batch or recipe(name).batch
        if options.quick:
            length, batch = 64, 2
        say(f"{name}: a batch of {batch}")
        presets[name] = split(preset(name, length=length), batch, recipe(name).clip, options.turns)
    return {"presets": presets}


def split(config: ParamixerConfig, batch: int, clip: float | None, steps: int) -> dict[str, Any]:
    """Medians of a few training steps after one to warm up."""
    generator = torch.Generator().manual_seed(0)
    model = Paramixer(config, generator=generator)
    optimizer = torch.optim.Adam(model.parameters())
    inputs, targets = _data(config, batch, generator)
    clock = _Clock()
    clock.watch(model)
    taken = [_step(model, optimizer, inputs, targets, clip, clock) for _ in range(steps + 1)][1:]
    seconds = statistics.median(seconds for seconds, _ in taken)
    shares: dict[str, dict[str, float]] = {}
    for part in PARTS:
        medians = {
            phase: statistics.median(parts[part, phase] / total for total, parts in taken)
            for phase in ("forward", "backward")
        }
        shares[part] = medians
    outside = statistics.median(1 - sum(_of(parts, "paramix")) / total for total, parts in taken)
    return {
        "batch": batch,
        "length": config.length,
        "config": dataclasses.asdict(config),
        "seconds": seconds,
        "shares": shares,
        "outside_paramix": outside,
    }


class _Clock:
    """Seconds by part and phase. Within nested parts only the innermost runs."""

    def __init__(self) -> None:
        self.seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._stack: list[tuple[str, str]] = []
        self._since = 0.0
        self._parts: dict[Node, str] = {}

    @contextmanager
    def running(self, part: str, phase: str = "forward") -> Iterator[None]:
        self.enter(part, phase)
        yield
        self.leave()

    def enter(self, part: str, phase: str) -> None:
        self._book()
        self._stack.append((part, phase))

    def leave(self) -> None:
        self._book()
        self._stack.pop()

    def _book(self) -> None:
        now = time.perf_counter()
        if self._stack:
            self.seconds[self._stack[-1]] += now - self._since
        self._since = now

    def watch(self, model: Paramixer) -> None:
        """Clock the forward passes of the model's parts and remember which nodes they made."""
        # What the model does beside these is to embed; what a block does beside its own is the chain.
        parts: dict[nn.Module, str] = {
            model: "embedding",
            model.dropout: "dropout",
            model.head: "head",
        }
        for block in model.blocks:
            assert isinstance(block, ParamixerBlock)
            parts |= {block: "paramix", block.g: "g", block.dropout: "dropout"}
        for module, part in parts.items():
            module.register_forward_pre_hook(lambda *_, part=part: self.enter(part, "forward"))
            module.register_forward_hook(self._after(part))

    def _after(self, part: str) -> Callable[[nn.Module, tuple[Any, ...], Tensor], None]:
        def after(_: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> None:
            self.leave()
            self._claim(part, arguments, output)

        return after

    def _claim(self, part: str, arguments: tuple[Any, ...], output: Tensor) -> None:
        before = {argument.grad_fn for argument in arguments if isinstance(argument, Tensor)}
        for node in _nodes(output.grad_fn, before):
            self._parts.setdefault(node, part)

    def follow(self, loss: Tensor) -> None:
        """Clock the backward pass from this loss on."""
        for node in _nodes(loss.grad_fn, set()):
            part = self._parts.get(node, "loss")
            node.register_prehook(lambda *_, part=part: self.enter(part, "backward"))
            node.register_hook(lambda *_: self.leave())

    def restart(self) -> None:
        self.seconds.clear()
        self._parts.clear()


def _step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    inputs: Tensor,
    targets: Tensor,
    clip: float | None,
    clock: _Clock,
) -> tuple[float, dict[tuple[str, str], float]]:
    clock.restart()
    start = time.perf_counter()
    answers = model(inputs)
    with clock.running("loss"):
        loss = F.cross_entropy(answers, targets) if targets.dtype == torch.int64 else F.mse_loss(answers, targets)
    clock.follow(loss)
    loss.backward()  # type: ignore[no-untyped-call]
    with clock.running("optimizer"):
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()
    total = time.perf_counter() - start
    parts = defaultdict(float, clock.seconds)
    parts["rest", "forward"] = total - sum(parts.values())
    return total, parts


def _nodes(start: Node | None, before: set[Node | None]) -> list[Node]:
    """The graph from a node back to, and without, those before."""
    found: dict[Node, None] = {}
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if node is None or node in before or node in found:
            continue
        found[node] = None
        waiting.extend(following for following, _ in node.next_functions)
    return list(found)


def _of(parts: dict[tuple[str, str], float], wanted: str) -> list[float]:
    return [seconds for (part, _), seconds in parts.items() if part == wanted]


def _data(config: ParamixerConfig, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    if config.vocabulary is not None:
        inputs = torch.randint(config.vocabulary, (batch, config.length), generator=generator)
    else:
        inputs = torch.rand(batch, config.length, config.features or 1, generator=generator)
    if config.target == "class":
        return inputs, torch.randint(config.outputs, (batch,), generator=generator)
    return inputs, torch.rand(batch, generator=generator)
