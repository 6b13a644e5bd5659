"""Arrow files, Feather, and folders of ``save_to_disk``: read like any table, with names of classes and splits."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import feather

from paramixer.data import load
from paramixer.data.errors import DataError
from paramixer.data.formats.tabular import tables

ROWS = {"text": [f"a longer text, number {i}" for i in range(300)], "label": [i % 2 for i in range(300)]}
NAME = "data-00000-of-00001.arrow"


def save(folder, begin=0, end=300, **state):
    """One split, as Hugging Face's library writes it."""
    folder.mkdir(parents=True)
    table = pa.table({column: values[begin:end] for column, values in ROWS.items()})
    with pa.ipc.new_stream(str(folder / NAME), table.schema) as writer:
        writer.write_table(table, max_chunksize=64)
    features = {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}, "text": {"_type": "Value"}}
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": NAME}], **state}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder


def save_splits(folder, *names):
    for number, name in enumerate(names):
        save(folder / name, 100 * number, 100 * number + 100)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": names}))
    return folder


@pytest.mark.parametrize("kind", ["file", "stream", "feather", "compressed"])
def test_every_kind_of_arrow_file_is_a_table(tmp_path, kind):
    table, path = (
        pa.table({**ROWS, "label": pa.array(map(str, ROWS["label"])).dictionary_encode()}),
        tmp_path / "a.arrow",
    )
    if kind in ("file", "stream"):
        with getattr(pa.ipc, f"new_{kind}")(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        path = tmp_path / "a.feather"
        feather.write_feather(table, path, compression="zstd" if kind == "compressed" else "uncompressed")
    assert tables.read_names(path) == ["text", "label"]
    rows = list(tables.read(path, ["label", "text"]))
    assert rows[299] == (f"{path}, row 300", ("1", ROWS["text"][299]))
    assert load(path).classes == ("0", "1")


def test_a_dataset_has_names_of_classes(tmp_path):
    task = load(save(tmp_path / "reviews"))
    assert task.classes == ("bad", "good")
    assert [len(split) for split in task.splits.values()] == [240, 30, 30]


def test_the_splits_of_a_dataset_are_kept(tmp_path):
    task = load(save_splits(tmp_path / "reviews", "train", "test", "unsupervised"))
    assert [len(split) for split in task.splits.values()] == [90, 10, 100]
    assert "the split 'unsupervised' of the dataset was left out" in task.notes
    assert "splits: the splits of the dataset, and a random share of every class of train" in "\n".join(task.describe())


def test_a_folder_that_was_changed_is_named_with_the_remedy(tmp_path):
    folder = save(tmp_path / "reviews")

    def fails() -> str:
        with pytest.raises(DataError) as caught:
            load(folder)
        return str(caught.value).removeprefix(str(folder))

    whole = (folder / NAME).read_bytes()
    (folder / NAME).write_bytes(whole[: len(whole) // 2])
    assert "reading stopped" in fails()
    (folder / NAME).write_bytes(b"")
    assert fails() == f"/{NAME}: the file is empty"
    (folder / NAME).unlink()
    assert fails() == f"/{NAME}: there is no such file"
    for files in ([{"filename": "../secret.arrow"}], [], None, [3]):
        (folder / "state.json").write_text(json.dumps({"_data_files": files}))
        assert "/state.json: it lists no files of its own folder" in fails()
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": NAME}], "_indices_data_files": [{}]}))
    assert "save it after dataset.flatten_indices()" in fails()
    (folder / "state.json").write_text("{")
    assert "/state.json: it cannot be read" in fails()


def test_a_number_without_a_class_is_a_null(tmp_path):
    folder = save(tmp_path / "reviews")
    (folder / "dataset_info.json").write_text(
        json.dumps({"features": {"label": {"names": ["bad"], "_type": "ClassLabel"}}})
    )
    with pytest.raises(DataError, match="row 2: null in 'label'"):
        load(folder)
