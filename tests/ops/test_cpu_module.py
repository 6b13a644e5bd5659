"""The compiled module itself: argument checks, memory, threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

import paramixer as pm
from ops.instruction_sets import engine, make_chain, needs_engine
from paramixer.ops import cpu
from paramixer.ops.chain import Chain

pytestmark = needs_engine
# AddressSanitizer delays every free, and ends the process when memory runs out.
not_sanitized = pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="runs under AddressSanitizer")


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


@pytest.mark.usefixtures("cache")
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
    assert fourth.data_ptr() == address
    assert (second == 2).all()
    assert (third == 3).all()
    with pytest.raises(ValueError, match="cannot be addressed"):
        engine.empty((2**40, 2**40))


@pytest.fixture
def cache():
    """The cache of freed memory, empty and with room for 100 MB."""
    limit = engine.cache_limit()
    engine.release_memory()
    engine.set_cache_limit(100_000_000)
    yield
    engine.set_cache_limit(limit)


@pytest.mark.usefixtures("cache")
def test_the_cache_stays_within_its_limit():
    for _ in range(3):
        tensors = [engine.empty((5_000_000,)) for _ in range(8)]
        del tensors
        assert 60_000_000 <= engine.cached_bytes() <= 100_000_000
    engine.set_cache_limit(30_000_000)
    assert engine.cached_bytes() <= 30_000_000
    engine.set_cache_limit(0)
    engine.empty((5_000_000,))
    assert engine.cached_bytes() == 0


@not_sanitized
@pytest.mark.usefixtures("cache")
def test_release_memory_returns_cached_memory_to_the_system():
    tensor = engine.empty((10_000_000,)).fill_(1)
    in_use = engine.empty((1_000_000,)).fill_(2)
    del tensor
    before = resident_bytes()
    assert pm.release_memory() >= 40_000_000
    assert resident_bytes() <= before - 35_000_000
    assert engine.cached_bytes() == pm.release_memory() == 0
    assert (in_use == 2).all()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.usefixtures("cache")
def test_the_environment_variable_limits_the_cache(monkeypatch):
    monkeypatch.setenv("PARAMIXER_CACHE_BYTES", "12345")
    cpu._limit_cache()
    assert engine.cache_limit() == 12345
    for wrong in ("1 GB", "-1", "1e9", str(2**63)):
        monkeypatch.setenv("PARAMIXER_CACHE_BYTES", wrong)
        with pytest.raises(ValueError, match=f"PARAMIXER_CACHE_BYTES='{wrong}' is not a number of bytes"):
            cpu._limit_cache()


@not_sanitized
def test_a_failed_allocation_is_an_error_and_not_the_end_of_the_process():
    """In a process of its own: an exception that leaves an OpenMP region would end it."""
    program = f"""
import importlib.util, numpy
spec = importlib.util.spec_from_file_location("_engine", {engine.__file__!r})
engine = importlib.util.module_from_spec(spec)
spec.loader.exec_module(engine)
numbers, ids = numpy.empty((0, 0), numpy.float32), numpy.empty(0, numpy.int64)
for rows in (2**50, 2**60):
    try:
        engine.lookup_backward(numbers, ids, numpy.empty((rows, 0), numpy.float32))
    except MemoryError:
        print("MemoryError")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.stdout.split() == ["MemoryError"] * 2, result.stderr


def test_kernels_use_as_many_threads_as_torch():
    for threads in (1, 3):
        torch.set_num_threads(threads)
        assert cpu._kernels().max_threads() == threads
