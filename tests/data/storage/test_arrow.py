"""Sequences on disk: what was written is read again, in any order and process, and memory stays small."""

from __future__ import annotations

import gc
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from paramixer.data.samples import Row
from paramixer.data.storage import arrow
from paramixer.data.storage.arrow import StoredSequences, Writer


def _write(path, dtype, rows):
    with Writer(path, dtype) as writer:
        for row in rows:
            writer.add(row)
    return path


def _ragged(dtype, count, features=None):
    """Sequences of many lengths whose every number tells where it belongs."""
    rng = np.random.default_rng(0)
    for index in range(count):
        length = int(rng.integers(1, 40))
        shape = (length,) if features is None else (length, features)
        highest = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1000
        yield Row(rng.integers(0, min(highest, 2**31 - 1), shape).astype(dtype), index % 7, length + index, f"é{index}")


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32"])
@pytest.mark.parametrize("batch_bytes", [64, 8 << 20])
def test_token_ids_come_back_whole(tmp_path, monkeypatch, dtype, batch_bytes):
    monkeypatch.setattr(arrow, "_BATCH_BYTES", batch_bytes)
    rows = list(_ragged(np.dtype(dtype), 100))
    found = StoredSequences(_write(tmp_path / "a.arrow", dtype, rows), None, True)
    assert len(found) == 100
    for index, row in enumerate(rows):
        inputs, target = found[index]
        assert inputs.dtype == target.dtype == torch.int64
        assert inputs.tolist() == row.sequence.tolist()
        assert target.item() == row.target
        assert found.id(index) == row.id
        assert found.part(index, 2, 5).tolist() == row.sequence[2:5].tolist()
    assert found.lengths.tolist() == [len(row.sequence) for row in rows]
    assert found.full_lengths.tolist() == [row.full for row in rows]
    assert found.targets.tolist() == [row.target for row in rows]
    assert found.targets.dtype == np.int64


@pytest.mark.parametrize("features", [1, 3])
@pytest.mark.parametrize("batch_bytes", [64, 8 << 20])
def test_numbers_come_back_with_their_features(tmp_path, monkeypatch, features, batch_bytes):
    monkeypatch.setattr(arrow, "_BATCH_BYTES", batch_bytes)
    rows = [row._replace(target=0.25 * row.target) for row in _ragged(np.float32, 50, features)]
    found = StoredSequences(_write(tmp_path / "a.arrow", "float32", rows), features, False)
    for row, (inputs, target) in zip(rows, (found[index] for index in range(50)), strict=True):
        assert inputs.dtype == target.dtype == torch.float32
        assert np.array_equal(inputs.numpy(), row.sequence)
        assert target.item() == row.target
    assert found.lengths.tolist() == [len(row.sequence) for row in rows]
    assert found.targets.dtype == np.float64


def test_indices_count_from_the_end_too_and_end_somewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "_BATCH_BYTES", 64)
    found = StoredSequences(_write(tmp_path / "a.arrow", "uint8", _ragged(np.uint8, 20)), None, True)
    for index in range(20):
        assert torch.equal(found[index - 20].inputs, found[index].inputs)
        assert found.id(index - 20) == f"é{index}"
        assert found.part(index - 20, 0, 3).tolist() == found[index].inputs[:3].tolist()
    for index in (20, -21):
        for read in (found.__getitem__, found.id, lambda place: found.part(place, 0, 1)):
            with pytest.raises(IndexError, match=f"item {index} of 20"):
                read(index)


def test_several_items_at_once_are_those_items(tmp_path):
    found = StoredSequences(_write(tmp_path / "a.arrow", "uint8", _ragged(np.uint8, 20)), None, True)
    several = found.__getitems__([3, -1, 3])
    assert [item.inputs.tolist() for item in several] == [found[index].inputs.tolist() for index in (3, 19, 3)]


def test_an_empty_split_has_no_items(tmp_path):
    found = StoredSequences(_write(tmp_path / "a.arrow", "uint8", []), None, True)
    assert len(found) == len(found.lengths) == len(found.targets) == 0
    with pytest.raises(IndexError):
        found[0]


def test_an_item_is_a_copy_that_outlives_the_file(tmp_path):
    path = _write(tmp_path / "a.arrow", "float32", [Row(np.arange(4, dtype=np.float32), 1.5, 4)])
    found = StoredSequences(path, 1, False)
    first = found[0].inputs
    first += 1
    assert found[0].inputs.flatten().tolist() == [0, 1, 2, 3]
    del found
    gc.collect()
    assert first.flatten().tolist() == [1, 2, 3, 4]


def test_a_pickle_holds_the_path_and_not_the_data(tmp_path):
    found = StoredSequences(_write(tmp_path / "a.arrow", "uint8", _ragged(np.uint8, 5000)), None, True)
    packed = pickle.dumps(found)
    assert len(packed) < 1000
    again = pickle.loads(packed)
    assert again[77].inputs.tolist() == found[77].inputs.tolist()
    assert again.targets.tolist() == found.targets.tolist()


def _in_list(items):
    return [(item.inputs, item.target) for item in items]


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_loader_processes_see_the_same_sequences(tmp_path, context):
    found = StoredSequences(_write(tmp_path / "a.arrow", "uint8", _ragged(np.uint8, 40)), None, True)
    # What was read here must not matter there.
    found.__getitems__(list(range(40)))
    loader = DataLoader(found, 8, num_workers=2, multiprocessing_context=context, collate_fn=_in_list)
    items = [item for batch in loader for item in batch]
    assert [(inputs.tolist(), int(target)) for inputs, target in items] == [
        (found[index].inputs.tolist(), index % 7) for index in range(40)
    ]


def _resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _growth(path, order):
    """By how many bytes resident memory grows at most while a file is opened and these items and their ids are read."""
    StoredSequences(path, None, True).__getitems__(list(range(10)))
    gc.collect()
    before, most = _resident(), 0
    found = StoredSequences(path, None, True)
    for number, index in enumerate(order):
        found[index], found.id(index)
        if number % 64 == 0:
            most = max(most, _resident())
    return max(most, _resident()) - before


def _uniform(count, length):
    sequence = np.arange(length).astype(np.uint8)
    return (Row(sequence, 0, length) for _ in range(count))


def test_reading_all_of_a_file_in_any_order_keeps_memory_small(tmp_path):
    """A hundredth of the sequences of the slow test, and half of what they take."""
    path = _write(tmp_path / "a.arrow", "uint8", _uniform(1_000, 32_768))
    assert _growth(path, range(1_000)) < 300e6 / 20
    assert _growth(path, np.random.default_rng(0).permutation(1_000).tolist()) < 300e6 / 20


def test_short_sequences_in_random_order_keep_memory_small(tmp_path):
    """Pages of the file around them, which are far more than their own bytes, must not count."""
    path = _write(tmp_path / "a.arrow", "uint8", _uniform(40_000, 800))
    assert _growth(path, np.random.default_rng(0).integers(0, 40_000, 5_000).tolist()) < 300e6 / 20


@pytest.mark.slow
def test_reading_100_000_sequences_of_length_32_768_keeps_memory_below_300_mb(tmp_path):
    if shutil.disk_usage(tmp_path).free < 8e9:
        pytest.skip("needs 8 GB of disk")
    path = _write(tmp_path / "a.arrow", "uint8", _uniform(100_000, 32_768))
    try:
        assert path.stat().st_size > 3.2e9
        assert _growth(path, range(100_000)) < 300e6
        assert _growth(path, np.random.default_rng(0).permutation(100_000)[:20_000].tolist()) < 300e6
    finally:
        path.unlink()
