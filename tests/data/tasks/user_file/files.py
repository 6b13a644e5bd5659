"""Files of a user, and what is wrong with them."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from paramixer.data import load
from paramixer.data.errors import DataError

COUNT = 30


def write_table(path, rows):
    """Rows, which are dictionaries, in the format that the name says."""
    name = path.name
    if name.endswith(".parquet"):
        parquet.write_table(pa.Table.from_pylist(rows), path)
        return path
    if ".jsonl" in name:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        comma = "\t" if ".tsv" in name else ","
        text = "\n".join([comma.join(rows[0]), *(comma.join(f'"{value}"' for value in row.values()) for row in rows)])
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def make_texts(count=COUNT, **more):
    return [{"text": f"The text, {i}", "label": "good" if i % 3 else "bad", **more} for i in range(count)]


def fails(path, **options):
    with pytest.raises(DataError) as caught:
        load("own", path, **options)
    return str(caught.value)


def by_id(found):
    """Every sequence by its id."""
    return {split.id(i): split[i] for split in found.splits.values() for i in range(len(split))}


def make_arrays(count=20, shape=(6,), dtype=np.float32):
    rng = np.random.default_rng(0)
    return (rng.random((count, *shape)) * 200).astype(dtype), np.arange(count) % 2
