from __future__ import annotations

import pytest
import torch
from torch.library import opcheck

import paramixer as pm
from ops import cases
from paramixer.ops.dropout import Dropout, dropout_op

BACKENDS = cases.AVAILABLE


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_the_share_dropped_is_p_and_the_mean_stays(p, backend):
    torch.manual_seed(0)
    with pm.backend(backend):
        dropped = Dropout(p)(torch.ones(1000, 1000))
    assert (dropped == 0).double().mean().item() == pytest.approx(p, abs=0.003)
    assert dropped.double().mean().item() == pytest.approx(1, abs=0.01)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / (1 - p)])


def test_masks_differ_from_step_to_step_and_repeat_from_the_seed():
    ones, dropout = torch.ones(4000), Dropout(0.5)
    torch.manual_seed(3)
    first, second = dropout(ones), dropout(ones)
    torch.manual_seed(3)
    assert torch.equal(dropout(ones), first)
    agreement = (first == second).double().mean().item()
    assert agreement == pytest.approx(0.5, abs=0.04)


def test_neighboring_elements_and_seeds_are_uncorrelated():
    """Correlations of a million fair bits beyond five standard deviations would be no accident."""
    ones = torch.ones(2**20)
    masks = torch.stack([dropout_op(ones, 0.5, torch.tensor(seed)) for seed in range(16)]).double() - 1
    between_seeds = (masks @ masks.T / 2**20 - torch.eye(16)).abs().max().item()
    assert between_seeds < 5 / 2**10
    for lag in (1, 2, 3, 8, 32, 1024, 4096):
        within = (masks[:, lag:] * masks[:, :-lag]).mean(1).abs().max().item()
        assert within < 5 / 2**10, lag


def test_the_gradient_has_the_mask_of_the_output():
    values = torch.randn(64, 32, requires_grad=True)
    dropped = Dropout(0.4)(values)
    dropped.sum().backward()
    assert torch.equal(values.grad == 0, dropped == 0)
    torch.testing.assert_close(values.grad * values.detach(), dropped.detach())


def test_evaluation_and_p_zero_change_nothing():
    values = torch.randn(10)
    assert Dropout(0.5).eval()(values) is values
    assert Dropout(0.0)(values) is values


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_opcheck_and_dtypes(dtype):
    values = torch.randn(6, 7, dtype=dtype, requires_grad=True)
    opcheck(dropout_op, (values, 0.5, torch.tensor(7)))
    assert Dropout(0.5)(values).dtype == dtype


def test_compiled_full_graph():
    dropout = torch.compile(Dropout(0.5), fullgraph=True, backend="aot_eager")
    dropped = dropout(torch.ones(1000))
    assert set(dropped.tolist()) == {0.0, 2.0}
    assert not torch.equal(dropped, dropout(torch.ones(1000)))


def test_empty_tensors():
    for backend in BACKENDS:
        with pm.backend(backend):
            assert Dropout(0.5)(torch.ones(0, 3)).shape == (0, 3)
