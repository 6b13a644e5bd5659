"""The Triton kernels as the compilers make them for GPUs: registers, spills, shared memory, occupancy. Needs no GPU."""

# No postponed annotations: the command line reads the fields' types.
from dataclasses import asdict, dataclass
from typing import Any

import torch

from benchmarks.settings import Settings
from paramixer.bench.case import Case
from paramixer.bench.cost import describe
from paramixer.bench.gpu_traffic import backward_traffic, forward_traffic, least_memory
from paramixer.bench.limits import DEVICES
from paramixer.bench.status import Notify
from paramixer.extras import needed_for

# Link inputs, hidden units, channels of a head, links, heads.
SHAPES: dict[str, tuple[int, int, int, int, int | None]] = {
    "paper, widths 32, K = 3": (32, 32, 32, 3, None),
    "paper, widths 32, K = 9": (32, 32, 32, 9, None),
    "paper, widths 32, K = 16": (32, 32, 32, 16, None),
    "paper's texts and genomes, widths 32, hidden 128, K = 15": (32, 128, 32, 15, None),
    "paper's documents, widths 100 and 128, K = 15": (100, 128, 100, 15, None),
    "default network, 4 heads of 16, K = 9": (16, 16, 16, 9, 4),
}
# The operators with kernels of their own, which have no matrix products.
ALONE = "link_mix of 32 channels, K = 9, and dropout"
# Label, precision of products, dtype of tensors.
NUMBERS = (
    ("float32", "ieee", torch.float32),
    ("TF32", "tf32", torch.float32),
    ("bfloat16", "tf32", torch.bfloat16),
)

# Chains whose times are predicted.
CASES = (
    Case(),
    Case(batch=1, channels=100, hidden=128),
    Case(batch=16, length=4096, protocol="cdil", links=9, heads=4, channels=64, inputs=64, hidden=16),
)


@dataclass(frozen=True, kw_only=True)
class KernelsOptions(Settings):
    """What to compile."""


def measure(options: KernelsOptions, notify: Notify) -> dict[str, Any]:
    """Compile every kernel for every device and shape; float32 in full and in TF32, and bfloat16."""
    with needed_for("benchmarks gpu-kernels"):
        import triton

        from benchmarks import gpu_compile
    shapes = dict(list(SHAPES.items())[-1:]) if options.quick else SHAPES
    launches = [
        (title, label, one)
        for title, widths in shapes.items()
        for label, precision, dtype in NUMBERS
        for one in gpu_compile.capture_chain(*widths, dtype, precision)
    ]
    for label, precision, dtype in NUMBERS:
        if precision == "ieee" or dtype != torch.float32:
            launches += [(ALONE, label, one) for one in gpu_compile.capture_operators(32, 9, dtype)]
    kernels: list[dict[str, Any]] = []
    for title, label, one in launches:
        for device in gpu_compile.DEVICES:
            notify(f"{title}, {label}: {one.name} for {device}")
            kernels.append({"shape": title, "numbers": label, **gpu_compile.compile_launch(one, device)})
    return {
        "triton": triton.__version__,
        "kernels": kernels,
        "traffic": {title: _account(*widths[:4]) for title, widths in shapes.items()},
        "predicted": [
            {"device": name, **describe(case, "triton", limits)} for case in CASES for name, limits in DEVICES.items()
        ],
    }


def _account(inputs: int, hidden: int, channels: int, links: int) -> dict[str, Any]:
    """Return bytes and operations per token, head and factor of each kernel, and the least of each pass."""
    passes = {
        "forward": forward_traffic(inputs, hidden, channels, links),
        "backward": backward_traffic(inputs, hidden, channels, links),
    }
    least = dict(zip(passes, least_memory(inputs, channels), strict=True))
    return {
        name: {"least": least[name], "kernels": [asdict(kernel) for kernel in kernels]}
        for name, kernels in passes.items()
    }
