"""Memory of a training step: the tensors that are alive at a time, with the device "meta" in place of a GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from ops.triton.accuracy import move
from paramixer.bench import cost
from paramixer.bench.case import Case
from paramixer.ops import triton
from paramixer.ops.chain import Chain
from paramixer.ops.triton import launch

CASES = [
    Case(length=4096),
    Case(batch=1, length=4096, channels=100, hidden=128),
    Case(batch=4, length=1024, protocol="cdil", links=9, heads=4, channels=64, inputs=64, hidden=16),
]


class Peak(TorchDispatchMode):
    """The most bytes that tensors on the device had at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self._alive: dict[StorageWeakRef, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "meta":
                storage = tensor.untyped_storage()
                self._alive[StorageWeakRef(storage)] = storage.nbytes()
        self._alive = {reference: size for reference, size in self._alive.items() if not reference.expired()}
        self.bytes = max(self.bytes, sum(self._alive.values()))
        return result


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_training_step_takes_the_memory_that_is_predicted(case, every, monkeypatch):
    monkeypatch.setattr(launch, "run", lambda *_, **__: None)
    monkeypatch.setattr(launch, "choose_precision", lambda values: "ieee")
    tensors = [tensor.detach() for tensor in case.tensors()]
    with Peak() as peak:
        chain = Chain(*(move(tensor, "meta") for tensor in tensors), case.offsets(), None, "factor", True)
        mixed, checkpoints = triton.paramix(chain, every)
        gradients = triton.paramix_backward(torch.empty_like(mixed), chain, every, checkpoints)
    assert len(gradients) == 6
    predicted = cost.training_memory(case, "triton", every)
    assert 0.95 * peak.bytes <= predicted <= 1.01 * peak.bytes
