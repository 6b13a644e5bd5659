"""Arrays of numpy: numbers, token ids, labels beside them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paramixer.data import load
from tests.data.tasks.user_file.files import by_id, fails, make_arrays


@pytest.mark.parametrize(
    ("shape", "dtype", "features", "preset"),
    [
        ((6,), np.float32, 1, "adding"),
        ((6,), np.float64, 1, "adding"),
        ((6,), np.int64, 1, "adding"),
        ((6,), np.uint16, 1, "adding"),
        ((6,), ">f4", 1, "adding"),
        ((6,), bool, 1, "adding"),
        ((6, 3), np.float16, 3, "adding"),
        ((6, 3), np.uint8, 3, "adding"),
        ((6,), np.uint8, None, "image"),
    ],
)
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_arrays_are_numbers_but_rows_of_bytes_are_token_ids(tmp_path, shape, dtype, features, preset, kind):
    x, y = make_arrays(20, shape, dtype)
    if kind == "npy":
        np.save(tmp_path / "a.npy", x)
        np.save(tmp_path / "y.npy", y)
        found = load("own", tmp_path / "a.npy", labels=tmp_path / "y.npy")
    else:
        np.savez_compressed(tmp_path / "a.npz", X=x, y=y)
        found = load("own", tmp_path / "a.npz")
    assert (found.features, found.preset, found.length, found.classes) == (features, preset, 6, ("0", "1"))
    if features is None:
        assert len(found.vocabulary) == 256
    for id, (inputs, target) in by_id(found).items():
        number = int(id) - 1
        assert inputs.dtype == (torch.int64 if features is None else torch.float32)
        assert np.array_equal(inputs.numpy().reshape(x[number].shape), x[number].astype(np.float32))
        assert target.item() == y[number]


@pytest.mark.parametrize("with_validation", [False, True])
def test_arrays_named_for_their_splits(tmp_path, with_validation):
    x, y = make_arrays(40)
    parts = {"train": slice(0, 20), "test": slice(20, 30)} | ({"val": slice(30, 40)} if with_validation else {})
    named = {f"{name}_{part}": array[where] for part, where in parts.items() for name, array in (("x", x), ("y", y))}
    np.savez(tmp_path / "a.npz", **named)
    found = load("own", tmp_path / "a.npz")
    assert [len(split) for split in found.splits.values()] == ([20, 10, 10] if with_validation else [18, 2, 10])
    assert np.array_equal(found.test[3].inputs.flatten(), x[23])


@pytest.mark.parametrize(
    ("names", "options"),
    [(("data", "labels"), {}), (("signals_of_it", "kinds"), {}), (("a", "b"), {"text": "a", "label": "b"})],
)
def test_two_arrays_of_any_names(tmp_path, names, options):
    x, y = make_arrays()
    np.savez(tmp_path / "a.npz", **dict(zip(names, (x, np.array(["n", "p"])[y]), strict=True)))
    assert load("own", tmp_path / "a.npz", **options).classes == ("n", "p")


def _npz(path, **arrays):
    np.savez(path, **arrays)
    return path


_X, _Y = make_arrays()


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        (
            {"a": _X, "b": _X, "c": _Y},
            {},
            "which arrays are sequences and labels? There are a [20, 6], b [20, 6], c [20]",
        ),
        (
            {"x": _X, "y": _Y},
            {"text": "z"},
            "--text and --label name two arrays; there are x [20, 6], y [20], and no 'z'",
        ),
        ({"x": _X, "y": _Y[:5]}, {}, "array 'y': int64 [5]; expected 20 labels, one per sequence"),
        ({"x": _X, "y": _X}, {}, "array 'y': float32 [20, 6]; expected 20 labels"),
        ({"x": _X[0], "y": _Y[:6]}, {}, "array 'x': float32 [6]; expected numbers"),
        ({"x": _X.astype(complex), "y": _Y}, {}, "array 'x': complex128 [20, 6]; expected numbers"),
        ({"x": _X[:, :0], "y": _Y}, {}, "array 'x': an array of shape [20, 0] holds nothing"),
        ({"x": _X, "y": _Y}, {"split": "s"}, "arrays have no columns; --split is for tables"),
        ({"x": _X, "y": np.where(_Y, np.nan, 0.5)}, {}, "array 'x', row 2: the target is NaN or infinite"),
        (
            {"x": _X.astype(object), "y": _Y},
            {},
            "it cannot be read as arrays of numbers: Object arrays cannot be loaded",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path, arrays, options, message):
    assert message in fails(_npz(tmp_path / "a.npz", **arrays), **options)


def test_a_npy_wants_its_labels_beside_it_and_a_npz_does_not(tmp_path):
    np.save(tmp_path / "a.npy", _X)
    assert "a .npy needs its labels in a second .npy; name it with --labels" in fails(tmp_path / "a.npy")
    path = _npz(tmp_path / "a.npz", x=_X, y=_Y)
    assert "a .npz holds the labels itself" in fails(path, labels=tmp_path / "a.npy")
    assert "there is no such file" in fails(tmp_path / "a.npy", labels=tmp_path / "none.npy")
