"""Times one Paramixer chain, forward and backward, against gathering neighbours and against softmax attention.

    python benchmarks/block.py [--batch 2] [--length 4096]

No time is printed for a result that does not agree with the reference.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

import paramixer as pm


def gather_chain(block: pm.ParamixerBlock, values: Tensor, inputs: Tensor) -> Tensor:
    """The chain with all neighbours of a factor gathered at once, [batch, length, links, channels]."""
    length = values.shape[1]
    for m, offsets in enumerate(block.offsets):
        neighbours = (torch.arange(length)[:, None] + offsets) % length
        weights = F.gelu(inputs @ block.w1[m] + block.b1[m]) @ block.w2[m] + block.b2[m]
        values = torch.einsum("bnk,bnkc->bnc", weights, values[:, neighbours]) + values
    return values


def seconds(run: Callable[[], object], repeats: int = 3) -> float:
    """Median of a few runs after one to warm up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """Verify, then print ratios to the engine that "auto" takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=4096)
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    block = pm.ParamixerBlock(options.length, 32, 32, generator=generator)
    values, inputs = torch.randn(2, options.batch, options.length, 32, generator=generator).requires_grad_()
    parameters = (block.w1, block.b1, block.w2, block.b2)

    def chain() -> Tensor:
        return pm.paramix(inputs, values, *parameters, block.offsets)

    ways: dict[str, Callable[[], Tensor]] = {
        "paramix": chain,
        "gathered neighbours": lambda: gather_chain(block, values, inputs),
        "softmax attention": lambda: F.scaled_dot_product_attention(inputs, inputs, values),
    }
    with pm.backend("reference"):
        expected = chain()
    for name in ("paramix", "gathered neighbours"):
        torch.testing.assert_close(
            ways[name](), expected, rtol=1e-3, atol=1e-3, msg=lambda text, n=name: f"{n}: {text}"
        )
    print(f"{options.batch} x {options.length}, {torch.get_num_threads()} threads, forward and backward")
    times = {name: seconds(lambda run=run: run().square().mean().backward()) for name, run in ways.items()}
    for name, found in times.items():
        print(f"{name:20s} {found * 1e3:8.1f} ms  {found / times['paramix']:6.2f}x")


if __name__ == "__main__":
    main()
