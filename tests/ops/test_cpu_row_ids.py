"""Link inputs shared through table rows: the same results as with inputs for every token, on every instruction set."""

from __future__ import annotations

import pytest
import torch

import paramixer as pm
from ops import cases
from ops.instruction_sets import (
    assert_accurate,
    assert_same_bits,
    each_set,
    make_chain,
    needs_engine,
    run,
    run_with_threads,
    share_rows,
)
from paramixer.ops import cpu

pytestmark = [needs_engine, pytest.mark.usefixtures("nan_memory")]


@pytest.mark.parametrize("rows", [1, 2, 95, 97, 300])
@pytest.mark.parametrize(("length", "channels", "links"), [(1, 1, 1), (61, 32, 7), (100, 5, 8), (200, 33, 17)])
def test_rows_of_a_table_give_the_links_of_their_tokens(length, channels, links, rows, generator):
    offsets = torch.randint(-200, 200, (3, links), generator=generator)
    chain = share_rows(make_chain(generator, offsets, 3, length, channels=channels), rows, generator)
    assert_accurate(chain)
    expanded = chain._replace(inputs=chain.inputs[chain.row_ids], row_ids=None)
    for name in each_set():
        assert torch.equal(cpu.paramix(chain, 0)[0], cpu.paramix(expanded, 0)[0]), name


@pytest.mark.parametrize("residual", cases.RESIDUALS)
@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("kind", ["none", "full", "zero", "one", "mixed"])
def test_lengths_rings_residuals_and_checkpoints(kind, ring, residual, generator):
    lengths = cases.make_lengths(6, 100)[kind]
    for protocol in cases.PROTOCOLS.values():
        offsets = protocol.offsets(100)
        chain = make_chain(generator, offsets, 6, 100, channels=8, residual=residual, lengths=lengths, ring=ring)
        assert_accurate(share_rows(chain, 40, generator), 1, 3)


@pytest.mark.parametrize(
    ("batch", "length", "channels", "rows"),
    # The waves of the last are of 2 sequences with 1 thread and of 6 with 8.
    [(300, 7, 32, 50), (3, 9000, 32, 5), (3, 9000, 32, 4000), (13, 1024, 128, 100)],
)
def test_several_waves_and_any_number_of_threads(batch, length, channels, rows, generator):
    lengths = None if channels == 128 else torch.randint(length + 1, (batch,), generator=generator).tolist()
    offsets = pm.Cdil(links=3, factors=3).offsets(length)
    chain = make_chain(generator, offsets, batch, length, channels, 8, channels, lengths=lengths)
    chain = share_rows(chain, rows, generator)
    assert_accurate(chain, 2)
    grad = torch.randn(chain.values.shape, generator=generator)
    first, *others = run_with_threads(lambda: run(cpu, chain, grad, 2), (1, 2, 8, 3))
    for other in others:
        assert_same_bits(first, other, "threads")
