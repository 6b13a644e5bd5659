"""CIFAR-10 from each of its forms; pickles are looked at, never run."""

from __future__ import annotations

import io
import json
import os
import pickle
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image

import paramixer as pm
from paramixer.data import DataError
from paramixer.data.formats.images import to_gray


@pytest.fixture
def colors():
    """Two training batches and a test batch: pixels [images, 1024, 3] and labels."""
    words = np.random.Philox(key=1).random_raw(3 * 6 * 1024 * 3)
    pixels = (words % 256).astype(np.uint8).reshape(3, 6, 1024, 3)
    return {
        name: (pixels[n], [n, 9, 2, 3, 4, 5]) for n, name in enumerate(("data_batch_1", "data_batch_2", "test_batch"))
    }


def write(folder, colors, form):
    folder.mkdir()
    for name, (pixels, labels) in colors.items():
        planes = pixels.transpose(0, 2, 1).reshape(-1, 3072)
        if form == "binary":
            records = np.concatenate([np.array(labels, np.uint8)[:, None], planes], 1)
            (folder / f"{name}.bin").write_bytes(records.tobytes())
        elif form == "png":
            Image.fromarray(pixels).save(folder / f"{name}.png")
        elif form.startswith("python"):
            batch = {b"data": np.ascontiguousarray(planes), b"labels": labels, b"batch_label": name.encode()}
            (folder / name).write_bytes(pickle.dumps(batch, protocol=int(form[-1])))
    if form == "png":
        train = [label for name in ("data_batch_1", "data_batch_2") for label in colors[name][1]]
        (folder / "train_lables.json").write_text(json.dumps(train))
        (folder / "test_lables.json").write_text(json.dumps(colors["test_batch"][1]))
    (folder / "readme.html").write_text("read me")
    return folder


def test_every_form_is_the_same_task(colors, tmp_path):
    forms = ["binary", "png", "python2", "python4"]
    sources = [write(tmp_path / form, colors, form) for form in forms]
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "binary", "cifar-10-batches-bin")
    arrays = {}
    for split, names in (("train", ["data_batch_1", "data_batch_2"]), ("test", ["test_batch"])):
        arrays[f"x_{split}"] = to_gray(np.concatenate([colors[name][0] for name in names])).reshape(-1, 32, 32)
        arrays[f"y_{split}"] = np.concatenate([colors[name][1] for name in names])
    np.savez(tmp_path / "gray.npz", **arrays)
    sources += [tmp_path / "cifar-10-binary.tar.gz", tmp_path / "gray.npz"]
    tasks = [pm.data.load("image", source=source, validation=3) for source in sources]
    assert len({task.fingerprint for task in tasks}) == 1
    task = tasks[0]
    assert [len(split) for split in task.splits.values()] == [9, 3, 6]
    inputs, target = task.test[1]
    assert task.classes[int(target)] == "truck"
    assert inputs.dtype == torch.int64
    assert inputs.tolist() == to_gray(colors["test_batch"][0])[1].tolist()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("test_batch.bin", b"123", "3 bytes, not a multiple of 3073"),
        ("test_batch.bin", b"", "0 bytes"),
        ("test_batch.bin", bytes([77]) + bytes(3072), "labels must be 0 to 9"),
        ("test_batch", b"nonsense", "not a readable pickle"),
        ("test_batch", pickle.dumps({b"labels": [1]}), "no data and labels"),
        ("test_batch", pickle.dumps({b"\xff": [1]}), "no data and labels"),
        ("test_batch", pickle.dumps([1, 2]), "no data and labels"),
        ("test_batch", pickle.dumps({b"labels": [1], b"data": b"12"}), "3072 bytes per image"),
        ("test_batch.png", b"nonsense", "it cannot be read as an image"),
        ("test_lables.json", b"[1,", "not readable JSON"),
        ("test_lables.json", b'{"a": 1}', "not whole numbers"),
        ("other", b"", "no images of both splits"),
    ],
)
def test_what_is_wrong_is_named(name, data, message, tmp_path):
    (tmp_path / "cifar").mkdir()
    (tmp_path / "cifar" / name).write_bytes(data)
    with pytest.raises(DataError, match=message) as caught:
        pm.data.load("image", source=tmp_path / "cifar")
    assert "cifar" in str(caught.value)


def test_images_without_labels_and_labels_without_images_are_refused(colors, tmp_path):
    folder = write(tmp_path / "png", colors, "png")
    (folder / "test_lables.json").write_text("[1, 2]")
    with pytest.raises(DataError, match="6 images but 2 labels"):
        pm.data.load("image", source=folder)
    (folder / "test_lables.json").unlink()
    with pytest.raises(DataError, match="no list of their labels"):
        pm.data.load("image", source=folder)
    with pytest.raises(DataError, match="validation=12; there are only 12 training images"):
        pm.data.load("image", source=write(tmp_path / "binary", colors, "binary"), validation=12)


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


def test_a_malicious_pickle_runs_nothing(colors, tmp_path):
    folder = write(tmp_path / "python", colors, "python2")
    for protocol in (0, 2, 4):
        (folder / "test_batch").write_bytes(
            pickle.dumps({b"data": Malicious(tmp_path / "run"), b"labels": [1]}, protocol)
        )
        with pytest.raises(DataError):
            pm.data.load("image", source=folder)
        assert not (tmp_path / "run").exists()


def test_any_bytes_as_npz_give_the_error(tmp_path):
    whole = io.BytesIO()
    np.savez(whole, x_train=np.zeros((2, 1024), np.uint8))
    for number, data in enumerate([b"", b"PK\x03\x04", whole.getvalue(), whole.getvalue()[:-30]]):
        (tmp_path / f"{number}.npz").write_bytes(data)
        with pytest.raises(DataError, match="npz"):
            pm.data.load("image", source=tmp_path / f"{number}.npz")


def test_the_real_images(shared_data):
    task = pm.data.load("image", source=shared_data / "cifar10" / "cifar10_gray_uint8.npz")
    assert [len(split) for split in task.splits.values()] == [45_000, 5_000, 10_000]
    assert np.bincount(task.test.targets).tolist() == [1000] * 10
