"""The compiled module itself: argument checks, memory, threads."""

from __future__ import annotations

import threading
import time

import pytest
import torch

import paramixer as pm
from ops.instruction_sets import engine, make_chain, needs_engine
from paramixer.ops import cpu
from paramixer.ops.chain import Chain

pytestmark = needs_engine


def test_noncontiguous_tensors_are_made_contiguous(generator):
    offsets = torch.stack([pm.Chord().offsets(64)] * 2, -1)[..., 0]
    assert not offsets.is_contiguous()
    chain = make_chain(generator, offsets, length=64)
    awkward = Chain(*(tensor.mT.contiguous().mT for tensor in chain[:6]), *chain[6:])
    assert torch.equal(cpu.paramix(awkward, 0)[0], cpu.paramix(chain, 0)[0])


def test_the_interpreter_is_free_while_a_kernel_runs(generator):
    torch.set_num_threads(1)
    chain = make_chain(generator, pm.Chord().offsets(2**15), 1, 2**15, 32, 64, 32)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.perf_counter()
    cpu.paramix(chain, 1)
    stop = time.perf_counter()
    done.set()
    ticker.join()
    assert sum(start < moment < stop for moment in ticks) >= 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": torch.ones(2, 5, 4, dtype=torch.float64)}, "values is not float32"),
        ({"values": torch.ones(2, 5, 8)[..., ::2]}, "values .*not contiguous"),
        ({"values": torch.ones(2, 6, 4)}, "values has shape"),
        ({"offsets": torch.zeros(3)}, "offsets is not int64"),
        ({"offsets": torch.zeros(4, dtype=torch.int64)}, "offsets has shape"),
        ({"lengths": torch.tensor([5, 6])}, r"lengths\[1\] is 6"),
        ({"lengths": torch.tensor([5])}, "lengths has shape"),
        ({"out": torch.ones(2, 5, 3)}, "out has shape"),
    ],
)
def test_kernels_check_their_arguments_before_they_read_memory(changes, message):
    arguments = {
        "weights": torch.ones(2, 5, 3),
        "values": torch.ones(2, 5, 4),
        "offsets": torch.zeros(3, dtype=torch.int64),
        "lengths": None,
        "ring": True,
        "out": torch.ones(2, 5, 4),
    }
    engine.link_mix(**arguments)
    with pytest.raises((TypeError, ValueError), match=message):
        engine.link_mix(**(arguments | changes))


def test_an_unknown_instruction_set_is_refused():
    with pytest.raises(ValueError, match="'quantum' does not run on this machine"):
        engine.use_instruction_set("quantum")


def test_memory_is_reused_and_never_given_out_twice():
    shape = (1000, 600)
    first, second = engine.empty(shape), engine.empty(shape)
    assert first.shape == shape
    assert first.data_ptr() != second.data_ptr()
    first.fill_(1)
    second.fill_(2)
    address = first.data_ptr()
    view = first[10:]
    del first
    third = engine.empty(shape).fill_(3)
    assert (view == 1).all(), "a view keeps its memory"
    del view
    fourth = engine.empty(shape).fill_(4)
    assert fourth.data_ptr() == address or not engine.keeps_memory()
    assert (second == 2).all()
    assert (third == 3).all()
    with pytest.raises(ValueError, match="cannot be addressed"):
        engine.empty((2**40, 2**40))
