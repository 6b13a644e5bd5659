from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import paramixer as pm
from paramixer.links import log2_ceil, named_pattern

LENGTHS = [2, 3, 16, 100, 1000, 1024]
PROTOCOLS = [pm.Chord(), pm.Cdil(links=3), pm.Cdil(links=9)]


def product_of_structures(offsets: torch.Tensor, length: int) -> torch.Tensor:
    """How many paths lead from i to j, by multiplying the dense 0/1 factors; independent of LinkPattern.reach."""
    product = torch.eye(length, dtype=torch.float64)
    rows = torch.arange(length)
    for factor in offsets.tolist():
        dense = torch.zeros(length, length, dtype=torch.float64)
        for offset in factor:
            dense[rows, (rows + offset) % length] = 1
        product = (dense @ product).clamp(max=1)
    return product


def test_chord_has_powers_of_two_in_every_factor():
    assert pm.Chord().offsets(16).tolist() == [[0, 1, 2, 4, 8]] * 4
    assert pm.Chord(links=3, factors=2).offsets(16).tolist() == [[0, 1, 2]] * 2
    assert pm.Chord(links=1).offsets(4).tolist() == [[0], [0]]


def test_cdil_doubles_its_dilation_from_one_and_is_not_reduced():
    assert pm.Cdil(links=5).offsets(8).tolist() == [[0, 1, 2, -1, -2], [0, 2, 4, -2, -4], [0, 4, 8, -4, -8]]
    assert pm.Cdil(links=3, factors=1).offsets(1000).tolist() == [[0, 1, -1]]


def test_offsets_are_int64_with_the_self_link_first():
    for protocol in PROTOCOLS:
        offsets = protocol.offsets(1000)
        assert offsets.dtype == torch.int64
        assert offsets.shape[0] == 10
        assert (offsets[:, 0] == 0).all()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_defaults_reach_every_position(protocol, length):
    assert (product_of_structures(protocol.offsets(length), length) > 0).all()
    assert protocol.reach(length) == 1.0


@pytest.mark.parametrize("length", [4, 16, 64, 1024])
def test_chord_with_log2_n_links_leaves_exactly_one_nth_empty(length):
    protocol = pm.Chord(links=log2_ceil(length))
    empty = (product_of_structures(protocol.offsets(length), length) == 0).double().mean()
    assert empty == 1 / length
    assert protocol.reach(length) == 1 - 1 / length


@pytest.mark.parametrize("length", [16, 100, 1000])
@pytest.mark.parametrize("links", [3, 9])
def test_cdil_from_dilation_two_leaves_half_empty_on_even_rings(length, links):
    literal = pm.Links(2 * pm.Cdil(links=links).offsets(length))
    assert (product_of_structures(literal.offsets(length), length) == 0).double().mean() == 0.5
    assert literal.reach(length) == 0.5


def test_circulant_of_the_papers_proof_is_singular():
    """All-ones CHORD at N = 16 has rank 13, at N = 256 rank 249: full rank holds for general entries, not for these."""
    for length, rank in ((16, 13), (256, 249)):
        circulant = torch.zeros(length, length, dtype=torch.float64)
        rows = torch.arange(length)
        for k in range(log2_ceil(length)):
            circulant[rows, (rows + k) % length] = 1
        assert torch.linalg.matrix_rank(circulant) == rank


@given(
    length=st.integers(2, 40),
    table=st.integers(1, 4).flatmap(
        lambda links: st.lists(st.lists(st.integers(-60, 60), min_size=links, max_size=links), min_size=1, max_size=4)
    ),
)
def test_reach_counts_the_structural_entries_of_any_table(length, table):
    links = pm.Links(table)
    filled = (product_of_structures(links.offsets(length), length) > 0).double().mean()
    assert links.reach(length) == pytest.approx(float(filled))


@given(st.integers(2, 10**9))
def test_log2_ceil_is_exact(length):
    power = log2_ceil(length)
    assert 2 ** (power - 1) < length <= 2**power


def test_protocols_are_frozen_values():
    assert pm.Chord() == pm.Chord()
    assert hash(pm.Links([[0, 1]])) == hash(pm.Links(((0, 1),)))
    assert pm.Links([[0, 1]]) != pm.Links([[0, 2]])
    with pytest.raises(dataclasses.FrozenInstanceError):
        pm.Cdil().links = 3


def test_numbers_may_be_numpys():
    assert pm.Links(np.array([[0, 1]])) == pm.Links([[0, 1]])
    assert torch.equal(pm.Chord(links=np.int64(3)).offsets(np.int64(8)), pm.Chord(links=3).offsets(8))
    assert pm.Links([[2**63 - 1, -(2**63)]]).offsets(4).tolist() == [[2**63 - 1, -(2**63)]]


def test_links_takes_a_tensor_and_keeps_the_table_as_written():
    table = torch.tensor([[0, -5, 700], [3, 3, 3]])
    assert torch.equal(pm.Links(table).offsets(10), table)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pm.Cdil(links=4), "links=4 is even.*use 3 or 5"),
        (lambda: pm.Chord(links=0), "links=0"),
        (lambda: pm.Cdil(links=-1), "links=-1"),
        (lambda: pm.Chord(factors=0), "factors=0"),
        (lambda: pm.Chord().offsets(1), "length 1 .*at least 2"),
        (lambda: pm.Cdil().offsets(0), "length 0 .*at least 2"),
        (lambda: pm.Chord().reach(-3), "length -3 .*at least 2"),
        (lambda: pm.Chord(links=80).offsets(8), "64 bits"),
        (lambda: pm.Links([]), "empty"),
        (lambda: pm.Links([[]]), "empty"),
        (lambda: pm.Links([[0, 1], [0]]), "row 1 of the table has 1 links, row 0 has 2"),
        (lambda: pm.Links([[0, 1.5]]), "an offset in row 0 of the table is 1.5"),
        (lambda: pm.Links([0, 1]), "is no table of offsets; give rows"),
        (lambda: pm.Links([[True, False]]), "row 0 of the table is True"),
        (lambda: pm.Links([[2**63]]).offsets(5), "does not fit into 64 bits"),
        (lambda: pm.Chord(2.5), "links is 2.5, not a whole number"),
        (lambda: pm.Cdil(None), "links is None, not a whole number"),
        (lambda: pm.Chord("3"), "links is '3', not a whole number"),
        (lambda: pm.Chord().offsets(2.0), "length is 2.0, not a whole number"),
        (lambda: named_pattern("cord"), "no protocol 'cord'; choose from chord, cdil"),
    ],
)
def test_errors_name_the_value_and_the_remedy(make, message):
    with pytest.raises(ValueError, match=message):
        make()
