"""How kernels are launched: tiles, warps, precision of products, and tuning by measurement."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import triton
from torch import Tensor

from paramixer.errors import BackendError

# Programs of a launch: what a CUDA grid can number; ROCm numbers threads, in 32 bits, of which a program has up to 512.
MOST_PROGRAMS = 2**23 - 1 if torch.version.hip else 2**31 - 1
# What a program can hold: a block of the first layer and of the second fit into shared memory, rows into registers.
# Heads are the second dimension of a grid.
_MOST = {"hidden": 512, "links": 256, "channels": 4096, "heads": 65535}
# Programs that sum gradients of parameters. Fixed, so that the order of the sum depends on shapes alone.
_SUMMING = 512
# What decides a choice of tile: the widths, not the length and not the batch.
_KEYS = ("HEADS", "E", "H", "K", "C")
# Tensors that kernels add to.
_ADDED_TO = ("dinputs", "passed")


@dataclass(frozen=True)
class Choice:
    """How a kernel is compiled: rows of a tile, warps of a program, stages of its loads."""

    tile: int
    warps: int = 4
    stages: int = 2

    @property
    def options(self) -> dict[str, int]:
        """The choice as keywords of a launch."""
        return {"TILE": self.tile, "num_warps": self.warps, "num_stages": self.stages}

    def for_amd(self) -> Choice:
        """Return the choice where a warp has 64 threads: with fewer rows or warps, or two blocks do not fit."""
        if self.warps < 8:
            return self
        return Choice(16, 4, self.stages) if self.tile == 16 else Choice(self.tile // 2, 8, self.stages)


def choose(width: int) -> Choice:
    """Return the choice without measurement, for a kernel whose widest tensor has this many columns.

    A thread holds 16 numbers of that tensor, as far as a tile may be: then no kernel spills registers, and at least two
    blocks of it fit on a multiprocessor (results/bench/gpu-kernels.json).
    """
    warps = 4 if pad(width) <= 32 else 8
    return Choice(max(16, min(64, 512 * warps // pad(width))), warps)


def choose_summing(block: int, precision: str) -> Choice:
    """Return the choice for the kernels that sum gradients, by the width of their blocks: products over few rows.

    Tensor cores take 16 rows at once: two warps share out 32 columns, more would compute the same twice.
    """
    if block <= 16:
        return Choice(32, 4)
    return Choice(16, 2 if precision == "tf32" else 4)


def pad(width: int) -> int:
    """Return the width of a tile: a power of two, at least 16, below which products have no instructions."""
    return max(16, 1 << (width - 1).bit_length())


def count_programs(batch: int, length: int) -> int:
    """Return how many programs sum the gradients of parameters: one for every 64 tokens, at most 512."""
    return max(1, min(_SUMMING, -(-batch * length // 64)))


def is_interpreted() -> bool:
    """Return whether Triton runs kernels in its interpreter, on the CPU: TRITON_INTERPRET=1 when it is imported."""
    return (
        bool(triton.knobs.runtime.interpret) if hasattr(triton, "knobs") else os.environ.get("TRITON_INTERPRET") == "1"
    )


def choose_precision(values: Tensor) -> str:
    """Return how matrix products read float32: all bits, or TF32 where torch may use it for its own products.

    Half precision is read as TF32, which holds every bfloat16 and float16 exactly.
    """
    wanted = values.dtype != torch.float32 or _allows_tf32()
    return "tf32" if wanted and (is_interpreted() or _has_tf32(values.device)) else "ieee"


def _allows_tf32() -> bool:
    matmul = torch.backends.cuda.matmul
    # Since torch 2.9 the older name raises where the newer one was set.
    precision = getattr(matmul, "fp32_precision", None)
    return bool(matmul.allow_tf32) if precision is None else precision == "tf32"


@cache
def _has_tf32(device: torch.device) -> bool:
    if torch.version.hip:
        return "gfx94" in torch.cuda.get_device_properties(device).gcnArchName
    return torch.cuda.get_device_capability(device) >= (8, 0)


def check_widths(**widths: int) -> None:
    """Refuse widths that no program can hold; channels are those of a head."""
    for name, width in widths.items():
        if width > _MOST[name]:
            raise BackendError(
                f"backend 'triton' cannot serve this call: it takes up to {_MOST[name]} {name}"
                f"{' of a head' if name == 'channels' else ''}, these have {width}; use pm.backend('reference')"
            )


def launch_tiles(kernel: Any, batch: int, length: int, heads: int, choice: Choice, **arguments: Any) -> None:
    """Run a kernel with one program for every tile of every head of every sequence."""
    if not batch * length:
        return
    least = 16
    if batch * triton.cdiv(length, least) * heads > MOST_PROGRAMS:
        raise BackendError(
            f"backend 'triton' cannot serve this call: {batch} sequences x length {length} x {heads} heads need more "
            "programs than a launch may have; split the batch"
        )

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (batch * triton.cdiv(length, meta["TILE"]) * heads,)

    run(kernel, grid, choice, N=length, HEADS=heads, **arguments)


def run(kernel: Any, grid: Callable[[dict[str, int]], tuple[int, ...]], choice: Choice, **arguments: Any) -> None:
    """Run a kernel with its measured choice where tuning is on, else with the fixed one."""
    choice = choice.for_amd() if torch.version.hip else choice
    # A GPU that is not the current one is not where Triton would launch.
    device = next(value.device for value in arguments.values() if isinstance(value, Tensor))
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        # Without the last option, the compilers of some versions fuse no multiplication with an addition, or warn.
        if is_tuned():
            added_to = tuple(name for name in _ADDED_TO if arguments.get(name) is not None)
            _tune(kernel, choice, added_to)[grid](**arguments, enable_fp_fusion=True)
        else:
            kernel[grid](**arguments, **choice.options, enable_fp_fusion=True)


def is_tuned() -> bool:
    """Return whether choices are measured: on a GPU, unless PARAMIXER_AUTOTUNE=0 or torch must be deterministic.

    Another tile is another order of some sums. Measured choices are kept on disk, where Triton can, so that results
    repeat; with ``torch.use_deterministic_algorithms(True)`` they do not depend on a measurement at all.
    """
    wanted = os.environ.get("PARAMIXER_AUTOTUNE", "1") != "0"
    return wanted and not is_interpreted() and not torch.are_deterministic_algorithms_enabled()


@cache
def _tune(kernel: Any, fixed: Choice, added_to: tuple[str, ...]) -> Any:
    """Return the kernel with a few choices around the fixed one, the first call of each shape measures them."""
    tiles = sorted({fixed.tile, max(16, fixed.tile // 2)})
    choices = [fixed, *(Choice(t, w) for t in tiles for w in (2, 4, 8) if Choice(t, w) != fixed)]
    configs = [triton.Config({"TILE": c.tile}, num_warps=c.warps, num_stages=c.stages) for c in choices]
    names = kernel.arg_names
    options: dict[str, Any] = {"key": [name for name in _KEYS if name in names]}
    if added_to:
        # A measurement runs a kernel many times.
        options["restore_value"] = list(added_to)
    if "cache_results" in inspect.signature(triton.autotune).parameters:
        options["cache_results"] = True
    return triton.autotune(configs, **options)(kernel)
