"""Compiles the Triton kernels for GPUs without a GPU, and reads what the compiler made of them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from paramixer.ops.chain import Chain
from paramixer.ops.triton import launch, single
from paramixer.ops.triton.chain import run_backward, run_forward

_POINTERS = {
    torch.float32: "*fp32",
    torch.bfloat16: "*bf16",
    torch.float16: "*fp16",
    torch.int32: "*i32",
    torch.int64: "*i64",
}


class Launch(NamedTuple):
    """A kernel with the arguments and the choice that the backend launches it with."""

    kernel: Any
    choice: launch.Choice
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(self.kernel.__name__)


@dataclass(frozen=True)
class Device:
    """What a multiprocessor has, and how it is shared out."""

    target: GPUTarget
    registers: int
    """32-bit registers of a multiprocessor, those of a compute unit's four SIMDs together."""
    shared: int
    """Bytes of shared memory that all its blocks can have."""
    reserved: int
    """Bytes of shared memory that each block takes for itself."""
    warps: int
    """Warps that can be resident."""
    blocks: int
    """Blocks that can be resident."""
    warp: int
    """Threads of a warp."""

    def resident_blocks(self, registers: int, shared: int, warps: int) -> int:
        """Return how many blocks fit: registers are given to warps by eights per thread."""
        of_a_warp = max(8, -(-registers // 8) * 8) * self.warp
        by_registers = self.registers // of_a_warp // warps
        by_shared = self.shared // (shared + self.reserved) if shared + self.reserved else self.blocks
        return min(by_registers, by_shared, self.warps // warps, self.blocks)


# From NVIDIA's CUDA programming guide (compute capabilities 8.0 and 9.0) and AMD's CDNA 3 instruction set guide.
DEVICES = {
    "sm_80": Device(GPUTarget("cuda", 80, 32), 65536, 164 * 1024, 1024, 64, 32, 32),
    "sm_90": Device(GPUTarget("cuda", 90, 32), 65536, 228 * 1024, 1024, 64, 32, 32),
    "gfx942": Device(GPUTarget("hip", "gfx942", 64), 131072, 64 * 1024, 0, 32, 32, 64),
}


def capture_chain(
    inputs: int,
    hidden: int,
    channels: int,
    links: int,
    heads: int | None = None,
    dtype: torch.dtype = torch.float32,
    precision: str = "ieee",
) -> list[Launch]:
    """Return the launches of one factor inside a chain of these widths, forward and backward, of each kernel one.

    Args:
        inputs: width of the link inputs of a head.
        hidden: width of the hidden layer.
        channels: width of the values of a head.
        links: per position.
        heads: None for a chain without an axis of heads.
        dtype: of all tensors.
        precision: of the products, "ieee" or "tf32".
    """
    factors, length = 3, 1000
    axis, count = (() if heads is None else (heads,)), heads or 1
    shapes = [
        (1, length, inputs),
        (1, length, channels * count),
        (*axis, factors, inputs, hidden),
        (*axis, factors, hidden),
        (*axis, factors, hidden, links),
        (*axis, factors, links),
    ]
    x, values, w1, b1, w2, b2 = (torch.zeros(shape, dtype=dtype) for shape in shapes)
    offsets = torch.zeros((*axis, factors, links), dtype=torch.int64)
    chain = Chain(x, values, w1, b1, w2, b2, offsets, torch.tensor([length]), "factor", True)

    def run() -> None:
        mixed, checkpoints = run_forward(chain, 1)
        run_backward(mixed, chain, 1, checkpoints)

    captured = capture(run, precision)
    # The second of each kind: from values inside the chain to values inside the chain.
    kinds: dict[str, list[Launch]] = {}
    for one in captured:
        kinds.setdefault(one.name, []).append(one)
    return [launches[1] for launches in kinds.values()]


def capture_operators(channels: int, links: int, dtype: torch.dtype = torch.float32) -> list[Launch]:
    """Return the launches of ``link_mix``, of its gradient of the weights, and of dropout."""
    batch, length = 2, 1000
    weights, values = (torch.zeros((batch, length, width), dtype=dtype) for width in (links, channels))
    rest = torch.zeros(links, dtype=torch.int64), torch.full((batch,), length), True

    def run() -> None:
        single.link_mix(weights, values, *rest)
        single.link_mix_backward(values, weights, values, *rest)
        single.dropout(values, 0.1, 0)

    return list({one.name: one for one in capture(run)}.values())


def capture(run: Callable[[], object], precision: str = "ieee") -> list[Launch]:
    """Return the launches of a call, which are not run; products are read in this precision."""
    captured: list[Launch] = []

    def keep(kernel: Any, grid: object, choice: launch.Choice, **arguments: Any) -> None:
        captured.append(Launch(kernel, choice, arguments))

    with _replace_run(keep, precision):
        run()
    return captured


def compile_launch(one: Launch, device: str) -> dict[str, Any]:
    """Return registers, spills, shared memory and occupancy of a kernel compiled for a device."""
    target = DEVICES[device].target
    choice = one.choice.for_amd() if target.backend == "hip" else one.choice
    arguments = {**one.arguments, **choice.options}
    warps, stages = arguments.pop("num_warps"), arguments.pop("num_stages")
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    aligned: dict[tuple[int], Any] = {}
    for place, parameter in enumerate(one.kernel.params):
        value = arguments[parameter.name]
        if parameter.is_constexpr or value is None:
            signature[parameter.name], constants[parameter.name] = "constexpr", value
        elif isinstance(value, Tensor):
            signature[parameter.name], aligned[(place,)] = _POINTERS[value.dtype], [["tt.divisibility", 16]]
        else:
            signature[parameter.name] = "fp32" if isinstance(value, float) else "i32"
    options = {"num_warps": warps, "num_stages": stages, "enable_fp_fusion": True}
    compiled = triton.compile(ASTSource(one.kernel, signature, constants, aligned), target=target, options=options)
    code = _read_cubin(compiled.asm["cubin"]) if target.backend == "cuda" else _read_amdgcn(compiled.asm["amdgcn"])
    shared = int(compiled.metadata.shared)
    return {
        "kernel": one.name,
        "device": device,
        "precision": arguments.get("PRECISION"),
        "tile": choice.tile,
        "warps": warps,
        **code,
        "shared": shared,
        "blocks": DEVICES[device].resident_blocks(code["registers"], shared, warps),
    }


def _read_cubin(cubin: bytes) -> dict[str, int]:
    """Return registers and local memory as cuobjdump reports them, and instructions as nvdisasm lists them."""
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        usage = _run(tools / "cuobjdump", "-res-usage", path)
        listing = _run(tools / "nvdisasm", "-c", path)
    numbers = re.search(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", usage)
    if numbers is None:
        raise ValueError(f"cuobjdump reports no registers: {usage[:200]}")
    names = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", listing)
    spills = sum(name in ("LDL", "STL") for name in names)
    return {
        "registers": int(numbers[1]),
        "local": int(numbers[2]) + int(numbers[3]),
        "spills": spills,
        "instructions": len(names),
    }


def _read_amdgcn(text: str) -> dict[str, int]:
    """Return what the assembler's metadata say of a kernel."""

    def number(name: str) -> int:
        found = re.search(rf"\.{name}:\s+(\d+)", text)
        return int(found[1]) if found else 0

    names = re.findall(r"^\t([sv]_\w+|global_\w+|ds_\w+|buffer_\w+|scratch_\w+)", text, re.MULTILINE)
    return {
        "registers": number("vgpr_count"),
        "local": number("private_segment_fixed_size"),
        "spills": number("vgpr_spill_count") + number("sgpr_spill_count"),
        "instructions": len(names),
    }


def _run(tool: Path, *arguments: object) -> str:
    return subprocess.run([str(tool), *map(str, arguments)], check=True, capture_output=True, text=True).stdout


@contextmanager
def _replace_run(run: Callable[..., object], precision: str) -> Iterator[None]:
    before = launch.run, launch.choose_precision
    # torch would look for a GPU to see what it can do.
    launch.run, launch.choose_precision = run, lambda _: precision  # type: ignore[assignment]
    try:
        yield
    finally:
        launch.run, launch.choose_precision = before
