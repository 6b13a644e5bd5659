"""The account of what the kernels move: every load and store, counted in the interpreter."""

from __future__ import annotations

from collections import Counter

import pytest

from ops.triton.accuracy import DEVICE, make_chain, run_backend
from paramixer.bench import gpu_traffic
from paramixer.ops.triton import chain as chain_module
from paramixer.ops.triton import launch

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="counts in the interpreter")


@pytest.fixture
def counted(monkeypatch):
    """Numbers loaded and stored by kernel name, while kernels run, and the tiles of each kernel."""
    from triton.runtime.interpreter import InterpreterBuilder

    counts: Counter[tuple[str, str]] = Counter()
    running: list[str] = []
    load, store, run = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store, launch.run

    def count_load(self, ptrs, mask, *rest):
        counts[running[-1], "loads"] += int(mask.data.sum())
        return load(self, ptrs, mask, *rest)

    def count_store(self, ptrs, value, mask, *rest):
        counts[running[-1], "stores"] += int(mask.data.sum())
        return store(self, ptrs, value, mask, *rest)

    def name_run(kernel, grid, choice, **arguments):
        running.append(kernel.fn.__name__)
        counts[running[-1], "tile"] = choice.tile
        counts[running[-1], "runs"] += 1
        run(kernel, grid, choice, **arguments)
        running.pop()

    monkeypatch.setattr(InterpreterBuilder, "create_masked_load", count_load)
    monkeypatch.setattr(InterpreterBuilder, "create_masked_store", count_store)
    monkeypatch.setattr(launch, "run", name_run)
    return counts


@pytest.mark.parametrize(
    ("inputs", "hidden", "channels", "links"),
    [(32, 32, 32, 3), (5, 7, 9, 4), pytest.param(40, 70, 20, 3, marks=pytest.mark.slow)],
)
def test_kernels_load_and_store_what_the_account_says(inputs, hidden, channels, links, counted, generator):
    length = 128
    sizes = inputs, hidden, channels, links
    run_backend(
        make_chain(
            generator, links=links, batch=1, length=length, inputs=inputs, hidden=hidden, channels=channels, factors=1
        )
    )
    account = [*gpu_traffic.forward_traffic(*sizes), *gpu_traffic.backward_traffic(*sizes)]
    assert {name for name, _ in counted} == {one.kernel for one in account}
    sums = inputs * hidden + hidden + links * hidden + links
    programs = launch.count_programs(1, length)
    # Each program writes its sums once, whatever the number of tokens.
    written = {
        "mlp_backward": sums if inputs <= 32 else sums - inputs * hidden,
        "first_layer_backward": inputs * hidden,
    }
    for one in account:
        tiles = length // counted[one.kernel, "tile"]
        assert counted[one.kernel, "runs"] == 1
        assert counted[one.kernel, "loads"] == length * one.loads + tiles * one.parameters, one.kernel
        assert counted[one.kernel, "stores"] == length * one.stores + programs * written.get(one.kernel, 0), one.kernel


def test_work_follows_the_sum_of_the_lengths(counted, generator):
    loads = []
    for lengths in ([128], [64, 0, 64], [0, 128, 0, 0, 0, 0]):
        counted.clear()
        run_backend(make_chain(generator, batch=len(lengths), length=128, factors=1, lengths=lengths))
        # Each tile reads the length of its sequence, and no more where it lies past it.
        tiles = {name: len(lengths) * 128 // counted[name, "tile"] for name, _ in counted}
        loads.append({name: counted[name, "loads"] - count for name, count in tiles.items()})
    assert loads[0] == loads[1] == loads[2]


def test_the_account_knows_the_kernels_blocks():
    assert gpu_traffic.INPUT_BLOCK == chain_module.INPUT_BLOCK
    assert gpu_traffic.HIDDEN_BLOCK == chain_module.HIDDEN_BLOCK


def test_the_account_pads_widths_and_counts_programs_as_launches_do():
    for width in (1, 5, 16, 17, 32, 100):
        assert gpu_traffic._pad(width) == launch.pad(width)
    for length in (0, 1, 64, 65, 10**6):
        assert gpu_traffic.count_programs(3 * length) == launch.count_programs(3, length)
