from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.block import BlockOptions
from benchmarks.record import make_record, read_record, write_record
from benchmarks.tests import samples
from paramixer import machine


def test_a_record_comes_back_as_it_was_written(tmp_path):
    made = make_record("block", BlockOptions(length=64, out=tmp_path), samples.BLOCK, 1.5)
    path = write_record(made, tmp_path / "new")
    assert path.name == "block.json"
    back = read_record(path)
    assert back.measured == samples.BLOCK
    assert back.settings["length"] == 64
    assert back.settings["out"] == str(tmp_path)
    assert back.seconds == 1.5
    assert {"cpu", "cores", "threads", "instruction_set", "torch"} <= back.machine.keys()
    assert back.engine == machine.serving_backend()
    assert list(path.parent.iterdir()) == [path]


def test_a_record_knows_its_commit():
    assert machine.commit() is None or len(machine.commit().removesuffix("-dirty")) == 40


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged, it is not JSON"),
        ("[]", "has format None, this version reads format 1"),
        ('{"format": 99}', "has format 99, this version reads format 1; run python -m benchmarks again"),
        ('{"format": 1, "what": "block"}', "is no benchmark record, it differs in at, commit"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "block.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_record(path)


def test_a_missing_record_says_how_to_make_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="run python -m benchmarks first"):
        read_record(tmp_path / "block.json")


def test_numbers_that_are_none_are_not_written(tmp_path):
    with pytest.raises(ValueError):
        write_record(samples.record("block", {"seconds": float("nan")}), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "results" / "bench").glob("*.json")), ids=str)
def test_the_records_of_this_repository_can_be_read(path):
    record = read_record(path)
    assert path.stem in (record.what, f"{record.what}-some")
    assert not record.quick
    json.dumps(record.measured, allow_nan=False)
