"""What is known about a task is saved whole, also by earlier versions, and only data enters the fingerprint."""

from __future__ import annotations

import dataclasses
import json

import pytest

import paramixer as pm
from paramixer.data import TaskInfo
from paramixer.data.storage.prepared import open_prepared
from paramixer.data.vocabulary import BASES

INFO = TaskInfo(
    name="t",
    preset="text",
    metric="accuracy",
    target="class",
    length=9,
    classes=("x", "y"),
    vocabulary=BASES,
    settings={"seed": 3},
    notes=("a note",),
    variable_length=True,
)
GOLDEN = {
    "adding": "d84fdead79d76f37",
    "order": "52b31ca833202492",
    "listops": "c845aa0d44bc8612",
    "pathfinder": "423d090e28f4f5ca",
    "own": "0aeba47240910a7d",
}


def test_a_document_holds_everything_and_reads_back():
    assert TaskInfo.from_document(json.loads(json.dumps(INFO.document()))) == INFO


@pytest.mark.parametrize(("name", "variable"), [("order", False), ("own", True)])
def test_documents_of_earlier_versions_are_read(name, variable):
    document = {**dataclasses.replace(INFO, name=name).document(), "recipe": "paper"}
    del document["variable_length"]
    assert TaskInfo.from_document(document).variable_length == variable


def test_how_to_train_is_no_part_of_the_fingerprint():
    other = dataclasses.replace(INFO, variable_length=False)
    assert other.document() != INFO.document()
    assert other.data_document() == INFO.data_document()


def test_a_users_file_is_mixed_at_its_own_lengths(tmp_path, cache_folder):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f"text {i},{i % 2}\n" for i in range(20)))
    task = pm.data.load(str(path))
    assert task.variable_length
    (file,) = cache_folder.glob("own-*/facts.json")
    document = json.loads(file.read_text())
    del document["variable_length"]
    file.write_text(json.dumps(document))
    earlier = pm.data.load(str(path))
    assert (earlier.variable_length, earlier.fingerprint) == (True, task.fingerprint)
    assert open_prepared(file.parent).fingerprint == task.fingerprint


def test_the_papers_tasks_fill_up_sequences():
    for name in ("adding", "order"):
        task = pm.data.load(name, length=16)
        assert not task.variable_length


def test_fingerprints_are_those_of_earlier_versions(tmp_path):
    """Golden values: records of runs name their data by them."""
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f"film {'good' if i % 2 else 'bad'} {i},{i % 2}\n" for i in range(40)))
    options = {"train": 8, "validation": 2, "test": 2}
    tasks = [
        pm.data.load("adding", length=32, seed=3),
        pm.data.load("order", length=32, **options),
        pm.data.load("listops", length=100, **options),
        pm.data.load("pathfinder", **options),
        pm.data.load(str(path)),
    ]
    assert {task.name: task.fingerprint[:16] for task in tasks} == GOLDEN
