from __future__ import annotations

import pytest
from torch.utils.flop_counter import FlopCounterMode

from paramixer.bench import cost, gpu_traffic
from paramixer.bench.case import Case
from paramixer.bench.implementations import IMPLEMENTATIONS
from paramixer.bench.limits import DEFAULT, DEVICES, Limits

CASES = [
    Case(batch=3, length=33, channels=5, inputs=6, hidden=7),
    Case(batch=1, length=64, protocol="cdil", links=9, channels=8, hidden=16, factors=2),
    Case(batch=2, length=20, links=3, channels=12, inputs=6, hidden=5, heads=3),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_flops_are_those_that_torch_counts(case):
    """The gather is all products, so torch's own counter sees every one of them."""
    tensors, run = case.tensors(), IMPLEMENTATIONS["gather"].build(case)
    with FlopCounterMode(display=False) as counter:
        output = run(*tensors)
    forward = counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        output.backward(case.upstream())
    assert cost.forward_operations(case).products == forward
    assert cost.backward_operations(case).products == counter.get_total_flops() == 2 * forward


def test_operations_of_a_case_small_enough_to_count_by_hand():
    """Two factors of one token pair: 2 x (2x3 + 3x2 + 2x2) FLOPs per token and factor."""
    case = Case(batch=1, length=2, channels=2, hidden=3, links=2, factors=2)
    operations = cost.forward_operations(case)
    assert operations.products == 2 * 2 * 2 * (2 * 3 + 3 * 2 + 2 * 2)
    assert operations.gelus == 2 * 2 * 3
    assert operations.additions == 2 * 2 * (3 + 2 + 2)
    assert operations.recomputed == 0
    # The hidden layer and the weights of both factors; with checkpoint_every = 2 the first factor as well.
    assert cost.backward_operations(case, checkpoint_every=1).recomputed == 2 * 2 * 2 * (2 * 3 + 3 * 2)
    extra = (
        cost.backward_operations(case, checkpoint_every=2).recomputed
        - cost.backward_operations(case, checkpoint_every=1).recomputed
    )
    assert extra == operations.products // 2


@pytest.mark.parametrize("backend", cost.BACKENDS)
def test_fewer_checkpoints_save_memory_and_cost_time(backend):
    case = Case(length=4096)
    often, rarely = (cost.training_memory(case, backend, every) for every in (1, 4))
    assert rarely < often
    fast, slow = (cost.backward_seconds(case, backend, DEFAULT, every) for every in (1, 4))
    assert fast < slow
    assert cost.forward_memory(case, backend) < rarely


@pytest.mark.parametrize("backend", cost.BACKENDS)
def test_a_faster_machine_is_predicted_to_take_less(backend):
    twice = Limits(2 * DEFAULT.flops, 2 * DEFAULT.bandwidth)
    case = Case()
    assert cost.forward_seconds(case, backend, twice) == pytest.approx(cost.forward_seconds(case, backend, DEFAULT) / 2)


def test_checkpoint_every_is_the_smallest_that_fits():
    case = Case(length=4096)
    needed = {every: cost.training_memory(case, "cpu", every) for every in (1, 2, 3)}
    assert cost.choose_checkpoint_every(case, "cpu", needed[1]) == 1
    assert cost.choose_checkpoint_every(case, "cpu", needed[1] - 1) == 2
    assert cost.choose_checkpoint_every(case, "cpu", needed[3]) == 3
    with pytest.raises(ValueError, match="needs .* GB even with checkpoint_every = .*smaller batch"):
        cost.choose_checkpoint_every(case, "cpu", 1)


def test_a_backend_without_a_model_is_refused():
    with pytest.raises(ValueError, match="no cost model for backend 'fast'; choose from cpu, triton, reference"):
        cost.forward_memory(Case(), "fast")


def test_a_gpu_is_limited_by_arithmetic_by_memory_or_by_the_cache_of_the_neighbors():
    case, enough = Case(), 1e30
    shared = {"flops": enough, "bandwidth": enough, "cache": enough}
    times = {name: cost.forward_seconds(case, "triton", Limits(**(shared | {name: 1e12}))) for name in shared}
    factors, links = case.offsets().shape
    gathered = 4 * case.tokens * factors * links * case.channels
    efficiency = gathered / 1e12 / times["cache"]
    assert 0 < efficiency < 1
    assert times["bandwidth"] == pytest.approx(cost.forward_bytes(case, "triton") / 1e12 / efficiency)
    real = cost.forward_seconds(case, "triton", DEVICES["a100"])
    assert real < cost.forward_seconds(case, "cpu", DEFAULT)
    assert cost.forward_seconds(case, "triton", DEVICES["h100"]) < real


@pytest.mark.parametrize("every", [1, 4])
def test_times_of_the_triton_kernels_are_those_of_what_they_execute(every):
    """Padding and repetitions included: widths of 100 compute as 128."""
    case = Case(channels=100, hidden=128)
    slow = Limits(flops=1e6, bandwidth=1e15)
    work = 1e6 * 0.5 * cost.backward_seconds(case, "triton", slow, every)
    operations = cost.backward_operations(case, every)
    assert work > operations.products + operations.recomputed + operations.additions + 30 * operations.gelus
    alike = Case(channels=128, hidden=128)
    assert cost.forward_seconds(case, "triton", slow) == pytest.approx(
        cost.forward_seconds(alike, "triton", slow), rel=0.01
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_triton_kernels_move_at_least_the_least(case):
    factors, links = case.offsets().shape
    widths = case.width, case.hidden, case.head_channels, links
    forward, backward = gpu_traffic.least_memory(case.width, case.head_channels)
    assert sum(one.memory for one in gpu_traffic.forward_traffic(*widths)) == forward
    assert sum(one.memory for one in gpu_traffic.backward_traffic(*widths)) > backward
    useful = sum(one.useful for one in gpu_traffic.backward_traffic(*widths))
    assert useful * case.tokens * case.chains * factors == cost.backward_operations(case).products
