"""What exported graphs compute in place of the custom ops is what the reference computes."""

from __future__ import annotations

import pytest
import torch

from paramixer.export import lowering
from paramixer.ops import reference
from paramixer.ops.chain import Chain
from paramixer.ops.ngram_layout import NgramLayout

# Links beyond both ends of a sequence, and twice around the ring.
OFFSETS = torch.tensor([[0, 1, -3], [0, 5, -17], [2, 2, 40]])
LENGTHS = [None, torch.tensor([11, 4, 0, 1])]


def make_chain(heads, lengths, residual, ring, shared=False):
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    leading = () if heads is None else (heads,)
    width = 5 if heads is None or shared else heads * 5
    offsets = OFFSETS if heads is None else torch.stack([OFFSETS * (-1) ** head for head in range(heads)])
    parameters = draw(*leading, 3, 5, 4), draw(*leading, 3, 4), draw(*leading, 3, 4, 3), draw(*leading, 3, 3)
    return Chain(draw(4, 11, width), draw(4, 11, 6), *parameters, offsets, lengths, residual, ring)


@pytest.mark.parametrize("lengths", LENGTHS, ids=["full", "lengths"])
@pytest.mark.parametrize("ring", [True, False])
@pytest.mark.parametrize(("heads", "shared"), [(None, False), (2, False), (2, True)])
@pytest.mark.parametrize("residual", ["factor", "block", "none"])
def test_a_chain(heads, shared, residual, ring, lengths):
    chain = make_chain(heads, lengths, residual, ring, shared)
    if lengths is not None:
        for tensor in chain[:2]:
            tensor[1, 4:] = torch.nan
    expected, _ = reference.paramix(chain, 0)
    found, _ = lowering.paramix(*chain, 0)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("lengths", LENGTHS, ids=["full", "lengths"])
@pytest.mark.parametrize("rows", [50, 10_000])
def test_rows_of_ngrams_counted_and_hashed_to_the_bit(rows, lengths):
    layout = NgramLayout((1, 2, 3, 7, 13), 20, rows)
    tokens = torch.randint(20, (4, 11), generator=torch.Generator().manual_seed(1))
    admitted = (torch.arange(layout.total) % 3 > 0).byte()
    for flags in (None, admitted):
        expected = reference.ngram_rows(tokens, lengths, layout, flags)
        found = lowering.ngram_rows(tokens, lengths, None, flags, layout.orders, 20, rows, 0)
        assert found.dtype == torch.int32
        assert torch.equal(found, expected)


@pytest.mark.parametrize("length", [1, 40])
def test_occurrences_stand_at_the_first_of_equal_rows(length):
    rows = torch.randint(-1, 6, (5, length, 3), generator=torch.Generator().manual_seed(2), dtype=torch.int32)
    assert torch.equal(lowering.occurrences(rows, 6), reference.occurrences(rows, 6))


@pytest.mark.parametrize("length", [1, 4, 9])
def test_windows_along_an_axis(length):
    values = torch.randn(2, length + 4, 3)
    assert torch.equal(lowering.unfold(values, 1, 5, 1), values.unfold(1, 5, 1))
