"""Nothing between the operators and the launches waits for the GPU, or reads a number from it."""

from __future__ import annotations

import pytest
import torch

from meta_device import ForbidWaiting
from ops.triton.accuracy import make_chain, move
from paramixer.ops import triton
from paramixer.ops.triton import launch

pytestmark = pytest.mark.usefixtures("recorded")


@pytest.fixture
def recorded(monkeypatch):
    """The names of the kernels that are launched; none of them runs."""
    names: list[str] = []
    monkeypatch.setattr(launch, "run", lambda kernel, grid, choice, **arguments: names.append(kernel.fn.__name__))
    monkeypatch.setattr(launch, "choose_precision", lambda values: "ieee")
    return names


def place(chain):
    """The chain with everything on the device but the offsets, which the operators take on the CPU."""
    return move(chain, "meta")._replace(offsets=chain.offsets)


@pytest.mark.parametrize("lengths", [None, [17, 5]])
@pytest.mark.parametrize(
    "options",
    [{}, {"heads": 3, "shared": True}, {"inputs": 40, "residual": "block", "ring": False}, {"length": 0}],
    ids=["one", "heads", "wide", "empty"],
)
def test_a_chain_never_waits(options, lengths, recorded, generator):
    chain = place(make_chain(generator, factors=3, lengths=lengths, **options))

    def run():
        mixed, checkpoints = triton.paramix(chain, 2)
        return triton.paramix_backward(mixed, chain, 2, checkpoints)

    # The first use of a table copies it.
    run()
    with ForbidWaiting():
        gradients = run()
    assert [gradient.shape for gradient in gradients] == [tensor.shape for tensor in chain[:6]]
    assert bool(recorded) == bool(chain.values.numel())


def test_rows_of_a_table_never_wait(generator):
    chain = place(make_chain(generator))
    table, row_ids = torch.empty(5, 3, device="meta"), torch.empty(2, 17, dtype=torch.int64, device="meta")
    chain = chain._replace(inputs=table, row_ids=row_ids)
    triton.paramix(chain, 1)
    with ForbidWaiting():
        mixed, checkpoints = triton.paramix(chain, 1)
        assert triton.paramix_backward(mixed, chain, 1, checkpoints)[0].shape == table.shape


@pytest.mark.parametrize("lengths", [None, torch.empty(2, dtype=torch.int64, device="meta")])
def test_the_other_operators_never_wait(lengths, recorded):
    weights, values = torch.empty(2, 9, 3, device="meta"), torch.empty(2, 9, 4, device="meta")
    layers = [torch.empty(shape, device="meta") for shape in ((4, 7), (7,), (7, 4), (4,))]
    offsets = torch.tensor([0, 1, -2])
    triton.link_mix(weights, values, offsets, lengths, True)
    with ForbidWaiting():
        triton.link_mix(weights, values, offsets, lengths, True)
        triton.link_mix_backward(values, weights, values, offsets, lengths, True)
        triton.mlp(values, *layers, lengths)
        triton.mlp_backward(values, values, *layers, lengths)
        triton.dropout(values, 0.5, 3)
    assert recorded[1:] == ["mix_stored", "mix_stored", "weight_gradients", "drop"]


def test_offsets_are_copied_once_for_all_lengths(generator):
    chains = [place(make_chain(generator, length=length)) for length in (4, 99, 7)]
    triton.paramix(chains[0], 1)
    with ForbidWaiting():
        for chain in chains[1:]:
            triton.paramix(chain._replace(offsets=chains[0].offsets), 1)


def test_a_copy_that_waits_is_noticed():
    with ForbidWaiting(), pytest.raises(AssertionError, match="a copy to the device waits"):
        torch.ones(1).to("meta")
    with pytest.raises(RuntimeError, match="meta"):
        torch.ones(1, device="meta").item()
