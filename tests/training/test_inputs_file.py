"""inputs.json: what a model was trained on, as a file that may come from anyone."""

from __future__ import annotations

import copy
import json

import pytest

import paramixer as pm
from paramixer.training.runs.folder import read_inputs, write_inputs

ROWS = "text,label\n" + "".join(
    f"{word} and more {number},{word[0]}\n" for number in range(30) for word in ("ax", "by")
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    write_inputs(tmp_path, pm.data.load(tmp_path / "a.csv", text="text", label="label"))
    return tmp_path


def change(path, value):
    """A function that sets what is at a path of a document; a value of None removes it."""

    def apply(document):
        *parents, last = path
        for name in parents:
            document = document[name]
        if value is None:
            del document[last]
        else:
            document[last] = value

    return apply


DAMAGES = {
    "no format": (change(["format"], None), "it has no format; restore it from the run"),
    "a newer format": (change(["format"], 99), "has format 99, this version of paramixer reads 1"),
    "no facts": (change(["facts"], None), "it has no facts"),
    "facts of another kind": (change(["facts"], [1]), "it has no facts"),
    "no fingerprint": (change(["fingerprint"], None), "it has no fingerprint"),
    "a field too many": (change(["facts", "colour"], 1), "there is no field 'colour'"),
    "a field too few": (change(["facts", "length"], None), "length"),
    "length as text": (change(["facts", "length"], "12"), "length"),
    "length zero": (change(["facts", "length"], 0), "length=0; it must be 1 to"),
    "length without end": (change(["facts", "length"], 10**15), "length=1000000000000000; it must be 1 to"),
    "no vocabulary": (change(["facts", "vocabulary"], "abc"), "vocabulary"),
    "vocabulary and features": (change(["facts", "features"], 3), "a vocabulary or features, and not both"),
    "a symbol twice": (
        change(["facts", "vocabulary", "symbols"], ["a", "a"]),
        "the symbol 'a' is in the vocabulary twice",
    ),
    "an unknown unit": (change(["facts", "vocabulary", "unit"], "page"), "unit='page'"),
    "symbols as numbers": (change(["facts", "vocabulary", "symbols"], [1, 2]), "symbols"),
    "no classes": (change(["facts", "classes"], []), "target='class' with 0 classes; the two contradict each other"),
    "a class twice": (change(["facts", "classes"], ["a", "a"]), "classes=['a', 'a']; no two may have one name"),
    "an unknown target": (change(["facts", "target"], "colour"), "target"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_gives_one_clear_error(folder, damage):
    harm, message = DAMAGES[damage]
    path = folder / "inputs.json"
    document = json.loads(path.read_text())
    before = copy.deepcopy(document)
    harm(document)
    assert document != before
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="inputs.json") as caught:
        read_inputs(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format": NaN}', b"[" * 100_000], ids=repr
)
def test_what_is_no_json_object_is_refused(folder, content):
    (folder / "inputs.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"inputs\.json is damaged"):
        read_inputs(folder)


def test_a_file_that_is_missing_is_said_to_be(folder):
    (folder / "inputs.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"inputs\.json is missing; .* was not written by paramixer train"):
        read_inputs(folder)


def test_a_file_that_is_too_large_is_not_read(folder):
    with (folder / "inputs.json").open("r+b") as file:
        file.truncate(2**28 + 1)
    with pytest.raises(ValueError, match="paramixer writes none that large"):
        read_inputs(folder)


def test_what_was_written_comes_back(folder):
    task = pm.data.load(folder / "a.csv", text="text", label="label")
    info, fingerprint = read_inputs(folder)
    assert fingerprint == task.fingerprint
    assert info.vocabulary == task.vocabulary
    assert (info.length, info.classes, info.target) == (task.length, task.classes, task.target)
