"""Folders that Hugging Face's ``save_to_disk`` writes: which files they consist of. Their package is not needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paramixer.data.errors import DataError

SPLITS_FILE = "dataset_dict.json"
"""Lists the splits, which are folders beside it."""
_STATE_FILE, _INFO_FILE = "state.json", "dataset_info.json"


def is_dataset_folder(folder: Path) -> bool:
    """Return whether it holds a dataset, or the splits of one."""
    return (folder / _STATE_FILE).is_file() or (folder / SPLITS_FILE).is_file()


def read_split_names(folder: Path) -> list[str]:
    """Return the names of the splits of a dataset."""
    names = _read(folder / SPLITS_FILE).get("splits")
    if not isinstance(names, list) or not all(_is_name(name) for name in names) or not names:
        raise DataError("it lists no splits; save the dataset again", folder / SPLITS_FILE)
    return [str(name) for name in names]


def list_files(folder: Path) -> list[Path]:
    """Return the Arrow files of one split, in their order."""
    if not (folder / _STATE_FILE).is_file():
        raise DataError(f"there is no {_STATE_FILE} in it; name one of its splits, or save the dataset again", folder)
    state = _read(folder / _STATE_FILE)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise DataError("its rows are chosen by indices; save it after dataset.flatten_indices()", folder)
    files = state.get("_data_files")
    names = [entry.get("filename") for entry in files if isinstance(entry, dict)] if isinstance(files, list) else []
    if not names or not all(_is_name(name) for name in names):
        raise DataError("it lists no files of its own folder; save the dataset again", folder / _STATE_FILE)
    return [folder / str(name) for name in names]


def read_class_names(folder: Path) -> dict[str, list[str]]:
    """Return the names of the classes of every column that holds their numbers."""
    if not (folder / _INFO_FILE).is_file():
        return {}
    features = _read(folder / _INFO_FILE).get("features")
    return {
        column: [str(name) for name in feature["names"]]
        for column, feature in (features.items() if isinstance(features, dict) else ())
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and isinstance(feature.get("names"), list)
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"it cannot be read ({error}); save the dataset again", path) from error
    if not isinstance(document, dict):
        raise DataError("it holds no JSON object; save the dataset again", path)
    return document


def _is_name(name: object) -> bool:
    """Return whether it names something in the same folder."""
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name
