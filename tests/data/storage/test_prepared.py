"""A prepared task: read back as it was written, prepared again if its source changes."""

from __future__ import annotations

import os

import numpy as np

from paramixer.data.samples import Row
from paramixer.data.storage import cache
from paramixer.data.storage.prepared import count_prepared, open_prepared, prepare
from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import Vocabulary


def _prepare(source):
    vocabulary = Vocabulary(symbols=("<pad>", "a", "b"))

    def build(preparation):
        text = source.read_text()
        rows = [(split, Row(vocabulary.encode(text), 1, len(text))) for split in ("train", "validation", "test")]
        preparation.write(preparation.track(rows, "rows"), "uint8")
        return TaskInfo(
            name="t",
            preset="text",
            metric="accuracy",
            target="class",
            length=4,
            classes=("x", "y"),
            vocabulary=vocabulary,
        )

    return prepare("t", {"source": cache.identify(source)}, build)


def test_a_changed_source_is_prepared_again(tmp_path, cache_folder):
    source = tmp_path / "a.txt"
    source.write_text("ab")
    first = _prepare(source)
    assert _prepare(source).fingerprint == first.fingerprint
    source.write_text("ba")
    # The same size; only the time tells.
    os.utime(source, ns=(1, 1))
    second = _prepare(source)
    assert second.train[0].inputs.tolist() == [2, 1]
    assert second.fingerprint != first.fingerprint
    assert len(list(cache_folder.glob("t-*"))) == 2
    assert count_prepared() == {"t": 2}


def test_the_fingerprint_follows_from_data_and_settings_and_not_from_places(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("ab")
    (tmp_path / "b.txt").write_text("ab")
    first = _prepare(tmp_path / "a.txt")
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "elsewhere"))
    second = _prepare(tmp_path / "b.txt")
    assert first.train.path.parent != second.train.path.parent
    assert first.fingerprint == second.fingerprint


def test_facts_are_read_back_as_they_were_written(tmp_path):
    (tmp_path / "a.txt").write_text("ab")
    first = _prepare(tmp_path / "a.txt")
    again = open_prepared(first.train.path.parent)
    for part in (
        "name",
        "preset",
        "metric",
        "target",
        "length",
        "classes",
        "vocabulary",
        "features",
        "settings",
        "notes",
    ):
        assert getattr(again, part) == getattr(first, part)
    assert again.fingerprint == first.fingerprint
    assert np.array_equal(again.test[0].inputs, first.test[0].inputs)
