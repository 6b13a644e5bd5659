"""Tensors may have more than 2^31 elements: what counts tokens is computed in 64 bits."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from ops.triton.accuracy import DEVICE, backend, make_chain, run_backend
from paramixer.ops.triton.mixing import weight_places
from paramixer.ops.triton.tiles import input_rows, locate_tile, value_rows

# [batch, length, heads, width] with 2^37 elements.
BATCH, LENGTH, HEADS, WIDTH = 8, 2**28, 4, 16
SEQUENCE, HEAD, ROW, LINK = 7, 3, 2**28 - 1, 5


@triton.jit(do_not_specialize=["sequence", "head", "row", "k", "N"])
def write_places(places, sequence, head, row, k, N, HEADS: tl.constexpr, WIDTH: tl.constexpr):
    sequence, row = sequence.to(tl.int64), row.to(tl.int64)
    tl.store(places, value_rows(sequence, head, row, N, HEADS, WIDTH, True))
    tl.store(places + 1, value_rows(sequence, head, row, N, HEADS, WIDTH, False))
    tl.store(places + 2, input_rows(None, sequence, head, row, True, N, HEADS, WIDTH, True, False))
    tl.store(places + 3, input_rows(None, sequence, head, row, True, N, HEADS, WIDTH, False, False))
    tl.store(places + 4, weight_places(sequence, head, row, k, N, HEADS, WIDTH, True))
    tl.store(places + 5, weight_places(sequence, head, row, k, N, HEADS, WIDTH, False))


@triton.jit(do_not_specialize=["N"])
def write_sequence(sequences, N, HEADS: tl.constexpr, TILE: tl.constexpr):
    sequence, head, start = locate_tile(N, HEADS, TILE)
    tl.static_assert(sequence.dtype == tl.int64)
    tl.store(sequences + tl.program_id(0), sequence * 1000 + head * 100 + start)


def test_rows_of_large_tensors_are_found():
    places = torch.zeros(6, dtype=torch.int64, device=DEVICE)
    write_places[(1,)](places, SEQUENCE, HEAD, ROW, LINK, LENGTH, HEADS=HEADS, WIDTH=WIDTH)
    token = SEQUENCE * LENGTH + ROW
    assert places.tolist() == [
        ((SEQUENCE * HEADS + HEAD) * LENGTH + ROW) * WIDTH,
        (token * HEADS + HEAD) * WIDTH,
        token * WIDTH,
        (token * HEADS + HEAD) * WIDTH,
        ((SEQUENCE * HEADS + HEAD) * WIDTH + LINK) * LENGTH + ROW,
        (token * HEADS + HEAD) * WIDTH + LINK,
    ]
    assert min(places) > 2**31


def test_programs_number_sequences_in_64_bits():
    sequences = torch.zeros(12, dtype=torch.int64, device=DEVICE)
    write_sequence[(12,)](sequences, 30, HEADS=3, TILE=16)
    expected = [1000 * s + 100 * h + 16 * t for s in range(2) for t in range(2) for h in range(3)]
    assert sequences.tolist() == expected


@pytest.mark.skipif(DEVICE != "cpu", reason="watches the interpreter")
@pytest.mark.parametrize(
    "options", [{}, {"heads": 2, "residual": "block"}, {"inputs": 33}], ids=["one", "heads", "wide"]
)
def test_every_address_of_a_token_is_64_bit(options, monkeypatch, generator):
    """Offsets in 32 bits stay below the number of parameters, however many tokens there are."""
    from triton.runtime.interpreter import InterpreterBuilder

    narrow = []
    add = InterpreterBuilder.create_addptr

    def watch(self, pointer, offset):
        if offset.data.dtype.itemsize < 8:
            narrow.append(int(abs(offset.data).max()))
        return add(self, pointer, offset)

    monkeypatch.setattr(InterpreterBuilder, "create_addptr", watch)
    length, batch = 700, 2
    chain = make_chain(generator, factors=1, length=length, batch=batch, channels=1, links=1, hidden=1, **options)
    run_backend(chain)
    backend.link_mix(*(torch.ones(batch, length, 1) for _ in range(2)), torch.tensor([3]), None, True)
    assert max(narrow) < length
