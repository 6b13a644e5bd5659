from __future__ import annotations

import pytest
import torch

from paramixer.bench import verification
from paramixer.bench.case import Case
from paramixer.bench.implementations import IMPLEMENTATIONS, PARAMIXER, default_names

CASES = [
    Case(length=63, channels=5, hidden=7),
    Case(batch=1, length=64, protocol="cdil", links=3, channels=8, inputs=3, hidden=4),
    Case(batch=3, length=9, factors=1, links=2, channels=1, hidden=1),
]
HEADS = Case(batch=2, length=20, protocol="cdil", links=3, channels=12, inputs=6, hidden=5, heads=3)
EAGER = [name for name, entry in IMPLEMENTATIONS.items() if entry.same_function and name != "compiled rolls"]


def assert_agrees(name: str, case: Case) -> None:
    tensors = case.tensors()
    errors = verification.relative_errors(
        IMPLEMENTATIONS[name].build(case), case, tensors, verification.compute_expected(case, tensors)
    )
    assert verification.describe_mismatch(errors) is None
    assert set(errors) == {"output", *(f"gradient of {field}" for field in tensors._fields)}


@pytest.mark.parametrize("name", EAGER)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_implementation_computes_the_same_output_and_gradients(name, case):
    if name in default_names(case):
        assert_agrees(name, case)


def test_implementations_that_serve_heads_compute_the_same():
    assert default_names(HEADS) == ("paramixer", "rolls", "compiled rolls", "gather", "head calls")
    for name in set(default_names(HEADS)) - {"compiled rolls"}:
        assert_agrees(name, HEADS)
    assert IMPLEMENTATIONS["scatter"].reason_to_skip(HEADS) == "not written for heads"
    assert IMPLEMENTATIONS["head calls"].reason_to_skip(CASES[0]) == "the chain has no heads"
    assert "head calls" not in default_names(CASES[0])


@pytest.mark.slow
def test_the_compiled_rolls_compute_the_same():
    assert_agrees("compiled rolls", CASES[0])


def test_paramixer_is_among_the_implementations_and_attention_is_marked_as_another_function():
    assert IMPLEMENTATIONS[PARAMIXER].same_function
    assert [name for name, entry in IMPLEMENTATIONS.items() if not entry.same_function] == ["softmax"]


def test_softmax_attention_differentiates_inputs_and_values():
    case = Case(length=16, channels=4, inputs=3)
    tensors = case.tensors()
    output = IMPLEMENTATIONS["softmax"].build(case)(*tensors)
    assert output.shape == tensors.values.shape
    for gradient in torch.autograd.grad(output.sum(), [tensors.inputs, tensors.values]):
        assert gradient.abs().sum() > 0


def test_compiling_is_not_tried_where_it_takes_minutes():
    assert IMPLEMENTATIONS["compiled rolls"].reason_to_skip(Case(length=4096)) is None
    assert "N = 4096" in IMPLEMENTATIONS["compiled rolls"].reason_to_skip(Case(length=4097))


def test_inputs_and_parameters_require_gradients_and_are_the_same_in_every_run():
    first, second = Case(length=8).tensors(), Case(length=8).tensors()
    assert all(tensor.requires_grad for tensor in first)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_impossible_cases_are_refused():
    with pytest.raises(ValueError, match="hidden=0"):
        Case(hidden=0)
    with pytest.raises(ValueError, match="inputs=5 cannot be divided among 4 heads"):
        Case(channels=8, inputs=5, heads=4)
    with pytest.raises(ValueError, match="links=4 is even"):
        Case(protocol="cdil", links=4)
