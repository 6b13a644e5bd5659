from __future__ import annotations

import numpy as np
import pytest
import torch

import paramixer as pm
from meta_device import ForbidWaiting
from paramixer.data.samples import Item
from paramixer.training import batches as batches_module
from paramixer.training.batches import Batch, Collate, load_batches, order_epoch, take_share

LENGTHS = np.random.Generator(np.random.Philox(1)).integers(1, 500, 1003)


@pytest.mark.parametrize("bucket", [False, True])
def test_an_epoch_has_every_sequence_once_in_an_order_of_its_own(bucket):
    batches = order_epoch(LENGTHS, 16, seed=3, epoch=0, bucket=bucket)
    assert sorted(np.concatenate(batches).tolist()) == list(range(1003))
    assert {len(batch) for batch in batches} == {16, 1003 % 16}
    again = order_epoch(LENGTHS, 16, seed=3, epoch=0, bucket=bucket)
    assert all(np.array_equal(one, other) for one, other in zip(batches, again, strict=True))
    for seed, epoch in ((3, 1), (4, 0)):
        other = order_epoch(LENGTHS, 16, seed=seed, epoch=epoch, bucket=bucket)
        assert not np.array_equal(np.concatenate(batches), np.concatenate(other))


def test_buckets_hold_similar_lengths_in_random_order():
    plain, bucketed = (order_epoch(LENGTHS, 16, 0, 0, bucket) for bucket in (False, True))

    def padding(batches):
        return sum(len(batch) * LENGTHS[batch].max() for batch in batches) / LENGTHS.sum()

    assert padding(plain) > 1.7
    assert padding(bucketed) < 1.1
    means = [LENGTHS[batch].mean() for batch in bucketed]
    assert np.abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.3


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
def test_processes_share_a_batch_without_duplicates_or_loss(processes):
    batch = np.arange(16)
    shares = [take_share(batch, rank, processes) for rank in range(processes)]
    assert sorted(np.concatenate(shares).tolist()) == list(range(16))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_short_sequences_are_filled_up():
    items = [Item(torch.tensor([5, 6, 7]), torch.tensor(1)), Item(torch.tensor([8]), torch.tensor(0))]
    batch = Collate(9, with_lengths=True)(items)
    assert batch.inputs.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert batch.lengths is not None
    assert batch.lengths.tolist() == [3, 1]
    assert batch.targets.tolist() == [1, 0]
    numbers = [Item(torch.ones(2, 3), torch.tensor(0.5)), Item(torch.ones(1, 3), torch.tensor(1.0))]
    batch = Collate(9, with_lengths=False)(numbers)
    assert batch.inputs[1, 1].tolist() == [0, 0, 0]
    assert batch.lengths is None


@pytest.mark.parametrize("workers", [0, 2])
def test_loading_leaves_the_callers_random_numbers_alone(workers):
    task = pm.data.load("order", length=16)
    batches = [np.array([4, 2]), np.array([7])]
    state = torch.get_rng_state()
    found = [batch.inputs for batch in load_batches(task.train, batches, Collate(0, False), workers)]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(found[0][1], task.train[2].inputs)
    assert torch.equal(found[1][0], task.train[7].inputs)


def test_batches_for_a_gpu_lie_in_pinned_memory_and_their_copies_do_not_wait(monkeypatch):
    loaders = []
    monkeypatch.setattr(batches_module, "DataLoader", lambda *_, **options: loaders.append(options) or [])
    for pinned in (True, False):
        assert list(load_batches([], [], Collate(0, True), pinned=pinned)) == []
    assert [options["pin_memory"] for options in loaders] == [True, False]
    batch = Batch(torch.zeros(2, 3), torch.ones(2), torch.zeros(2), torch.ones(2))
    with ForbidWaiting():
        assert {tensor.device.type for tensor in batch.to(torch.device("meta"))} == {"meta"}
