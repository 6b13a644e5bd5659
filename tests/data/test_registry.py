"""Tasks are found by name, are light until they are needed, and refuse nonsense before anything is read or written."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

import paramixer as pm
from paramixer.data import DataError, registry
from paramixer.data.definition import Definition

TASKS = {
    *("adding", "order", "listops", "image", "text", "pathfinder"),
    *("documents", "genome", "hfdna", "mtcdna", "own"),
}


def test_every_task_is_registered():
    assert set(registry.definitions()) == TASKS
    for name, definition in registry.definitions().items():
        assert isinstance(definition, Definition)
        assert definition.name == name
        assert {"seed", "progress"} <= set(definition.options)


def test_listing_and_generating_import_no_heavy_package():
    program = """
import sys
import paramixer as pm
pm.data.definitions()
pm.data.load("adding", length=16)
heavy = ["torch", "pyarrow", "matplotlib", "PIL", "sklearn", "scipy", "dnaio", "rich", "filelock", "platformdirs"]
assert not [name for name in heavy if name in sys.modules], [name for name in heavy if name in sys.modules]
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


NONSENSE = [
    *[(name, {"length": length}, "length=") for name in sorted(TASKS - {"image"}) for length in (1, 0, -5, 2.5, "8")],
    *[(name, {"length": math.nan}, "length=nan") for name in sorted(TASKS - {"image"})],
    *[(name, {"seed": seed}, "seed=") for name in ("adding", "own", "genome") for seed in (0.5, "1", None)],
    *[
        (name, {split: size}, f"{split}={size}; it must be a whole number of at least 1")
        for name in ("adding", "order", "listops", "pathfinder")
        for split in ("train", "validation", "test")
        for size in (0, -1, 1.5, math.nan)
    ],
    *[("image", {"validation": size}, f"validation={size}; it must be a whole number") for size in (-1, 0, 0.1)],
    *[
        (name, {"validation": share}, f"validation={share}; it is a share")
        for name in ("text", "own")
        for share in (-1, 0, 1, 3, math.nan)
    ],
    *[("own", {"test": share}, f"test={share}; it is a share") for share in (-1, 0, math.nan)],
    *[(name, {"encoding": "utf-9"}, "encoding='utf-9'") for name in ("text", "documents")],
    ("own", {"validation": 0.6, "test": 0.6}, "leave nothing to train on"),
    ("own", {"target": "number"}, "target='number'; choose from class, value"),
    ("listops", {"length": 4}, "length=4; it must be a whole number of at least 5"),
    ("pathfinder", {"size": 8}, "size=8; it must be a whole number of at least 16"),
    ("pathfinder", {"difficulty": "harder"}, "difficulty='harder'"),
    ("genome", {"shortest": -1}, "shortest=-1"),
    ("genome", {"stride": 0}, "stride=0"),
]


@pytest.mark.parametrize(("name", "options", "message"), NONSENSE)
def test_nonsense_is_one_line_before_anything_is_read_or_written(tmp_path, cache_folder, name, options, message):
    # The source does not exist, so reading it, or only its status, would be another error.
    source = {} if registry.definitions()[name].generated else {"source": tmp_path / "nothing.csv"}
    with pytest.raises(DataError) as caught:
        pm.data.load(name, **source, **options)
    assert str(caught.value).startswith(message) or message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(cache_folder.iterdir()) == []


def test_what_a_task_does_not_take_is_named_with_what_it_takes():
    with pytest.raises(DataError, match="task 'adding' takes no difficulty; it takes length, seed, train, validation"):
        pm.data.load("adding", difficulty="hard")
    with pytest.raises(DataError, match="task 'image' takes no length"):
        pm.data.load("image", source="nothing", length=8)


def test_a_file_is_named_by_a_text_or_a_path(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f"text {i},{i % 2}\n" for i in range(20)))
    assert (
        pm.data.load(path).fingerprint == pm.data.load(str(path)).fingerprint == pm.data.load("own", path).fingerprint
    )


def test_an_unknown_name_has_the_nearest_one_or_the_list():
    with pytest.raises(DataError, match="there is no task and no file 'adding2'; did you mean 'adding'?"):
        pm.data.load("adding2")
    with pytest.raises(DataError, match="there is no task and no file 'zzz'; there are adding"):
        pm.data.load("zzz")


def test_messages_about_a_users_file_name_the_file_and_no_task(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\n" + "a,1\nb,2\n" * 20)
    with pytest.raises(DataError, match=r"^reviews\.csv takes no difficulty; it takes source"):
        pm.data.load(path, difficulty="hard")
    with pytest.raises(DataError, match=r"there are adding.*, or name your file$") as refusal:
        pm.data.load("zzz")
    assert "own" not in str(refusal.value).split(", ")
    with pytest.raises(DataError, match="there is no file to read; name your files: csv"):
        pm.data.load("own")
    task = pm.data.load(path)
    assert (task.name, task.display_name) == ("own", "your file")
