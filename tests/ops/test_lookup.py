from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.library import opcheck

import paramixer as pm
from ops import cases
from paramixer.ops.lookup import Embedding, lookup_op

BACKENDS = cases.AVAILABLE


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pad", [None, 0, 6])
@pytest.mark.parametrize("channels", [1, 16, 32, 37])
def test_rows_and_gradients_are_torchs_own(channels, pad, backend, generator):
    ids = torch.randint(7, (3, 50), generator=generator)
    torchs = nn.Embedding(7, channels, padding_idx=pad)
    ours = Embedding(7, channels, padding_idx=pad)
    ours.load_state_dict(torchs.state_dict())
    grad = torch.randn(3, 50, channels, generator=generator)
    with pm.backend(backend):
        rows = ours(ids)
        rows.backward(grad)
    expected = torchs(ids)
    expected.backward(grad)
    assert torch.equal(rows, expected)
    torch.testing.assert_close(ours.weight.grad, torchs.weight.grad)
    if pad is not None:
        assert not ours.weight.grad[pad].any()


def test_a_million_tokens_of_one_kind_add_up_exactly_for_any_number_of_threads():
    """A sum of floats in one go would be off by hundreds."""
    before = torch.get_num_threads()
    ids = torch.zeros(2**20, dtype=torch.int64)
    grad = torch.full((2**20, 20), 0.1)
    table = Embedding(2, 20)
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        table.weight.grad = None
        table(ids).backward(grad)
        if pm.backends()["cpu"]:
            assert torch.equal(table.weight.grad[0], torch.full((20,), 2**20 * 0.1))
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_opcheck_and_dtypes(dtype):
    table = torch.randn(5, 3, dtype=dtype, requires_grad=True)
    for ids in (torch.tensor([[0, 4, 4]]), torch.tensor([1, 2], dtype=torch.int32)):
        opcheck(lookup_op, (ids, table, 4))
        assert lookup_op(ids, table, None).dtype == dtype


def test_compiled_full_graph():
    table = Embedding(5, 3)
    ids = torch.tensor([[0, 4, 4]])
    assert torch.equal(torch.compile(table, fullgraph=True, backend="aot_eager")(ids), table(ids))


def test_ids_outside_the_table_are_refused():
    for backend in BACKENDS:
        with pm.backend(backend), pytest.raises(IndexError):
            Embedding(5, 3)(torch.tensor([5]))
