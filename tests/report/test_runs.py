"""Opening run folders: missing parts become notes, damaged records raise."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from paramixer.report.runs import Run, open_run
from paramixer.training.runs.folder import RunFolder


@pytest.fixture
def copy(run, tmp_path) -> Path:
    return shutil.copytree(run("order"), tmp_path / "copy")


def test_a_complete_run_has_model_and_data_and_no_notes(run):
    opened = open_run(run("order"))
    assert opened.model is not None
    assert opened.task is not None
    assert opened.notes == ()
    assert (opened.name, opened.metric, opened.model_name) == ("order", "error", "CHORD")


def test_missing_data_is_noted(run, tmp_path):
    copy = tmp_path / "moved"
    shutil.copytree(run("hostile"), copy)
    config = RunFolder(copy).config
    text = config.read_text(encoding="utf-8")
    config.write_text(re.sub(r"(?<=task: ).*?\.csv", str(tmp_path / "nowhere.csv"), text, flags=re.DOTALL))
    opened = open_run(copy)
    assert opened.task is None
    assert opened.model is not None
    assert len(opened.notes) == 1
    assert "The data is not available: " in opened.notes[0]
    assert "nowhere.csv" in opened.notes[0]


def test_changed_data_is_noted(copy):
    config = RunFolder(copy).config
    config.write_text(re.sub(r"length: 24", "length: 25", config.read_text()))
    opened = open_run(copy)
    assert opened.task is None
    assert "the data has changed since" in opened.notes[0]


def test_a_missing_model_is_noted(copy):
    shutil.rmtree(copy / "model")
    opened = open_run(copy)
    assert opened.model is None
    assert "has no model yet" in opened.notes[0]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"model": {"mixer": "paramixer", "protocol": "cdil"}}, "CDIL"),
        ({"model": {"mixer": "linformer", "protocol": "chord"}}, "linformer"),
        ({"system": "paramixer", "model": {"protocol": "chord"}}, "CHORD"),
        ({"system": "linformer", "model": {"hidden": 8}}, "linformer"),
    ],
)
def test_old_and_new_records_name_the_model(record, expected):
    assert Run("", Path(), {}, record, [], None, None, ()).model_name == expected


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("record.json", lambda text: b'{"format": 1, "finished": true}', "record.json is damaged: its task is None"),
        (
            "record.json",
            lambda text: text.replace(b'"peak_memory": ', b'"peak_memory": null, "was": '),
            "record.json is damaged: its peak_memory is None",
        ),
        ("metrics.jsonl", lambda text: text + b'{"a": 1}\n', "metrics.jsonl, line .* is no line of metrics"),
        ("metrics.jsonl", lambda text: text + b"[1]\n", "metrics.jsonl, line .* is no line of metrics"),
        (
            "metrics.jsonl",
            lambda text: text.replace(b'"loss": ', b'"loss": "x", "y": '),
            "metrics.jsonl, line 2: .* is no line of metrics",
        ),
        ("metrics.jsonl", lambda text: text + b"\xff\n", "metrics.jsonl is damaged"),
    ],
)
def test_damaged_files_are_named(copy, name, change, error):
    (copy / name).write_bytes(change((copy / name).read_bytes()))
    with pytest.raises(ValueError, match=error):
        open_run(copy)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no run folder .*nowhere"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="is no run folder"):
        open_run(tmp_path)
