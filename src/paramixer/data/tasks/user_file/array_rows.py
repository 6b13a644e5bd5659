"""numpy's arrays as samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paramixer.data.errors import DataError
from paramixer.data.formats import arrays
from paramixer.data.formats.tabular.tables import name_files
from paramixer.data.tasks.user_file.opened import Opened, Options
from paramixer.data.vocabulary import BYTES

# Sequences with so many times more numbers per position than positions may be stored channels first.
_FLAT = 4


def open_arrays(paths: Sequence[Path], options: Options) -> Opened:
    """Return how a .npy or .npz is read."""
    if len(paths) > 1:
        raise DataError("arrays are read from one file; put them into one .npz", name_files(paths))
    source = paths[0]
    for name in ("split", "id"):
        if getattr(options, name) is not None:
            raise DataError(f"arrays have no columns; --{name} is for tables", source)
    options.refuse(["alphabet", "image_size", "rate"], "arrays are read as they are", source)
    parts = arrays.read_parts(source, options.labels, options.text, options.label)
    tokens = arrays.hold_tokens(parts)
    inferred = {
        "kind": "numpy",
        "files": 1,
        "input": parts[0].place.rpartition(", ")[2] if source.suffix.lower() == ".npz" else "the array",
        "target": "the array beside it" if options.labels is None else f"the array {options.labels.name}",
        "alphabet": "bytes" if tokens else "numbers",
    }
    if parts[0].split is not None:
        inferred["split"] = "the names of the arrays"
    notes = []
    length, features = parts[0].sequences.shape[1], parts[0].sequences.shape[2] if parts[0].sequences.ndim == 3 else 1
    if features >= _FLAT * length:
        notes.append(
            f"{list(parts[0].sequences.shape)} is read as sequences of length {length} with {features} numbers per "
            "position; if the series run along the last axis, transpose: x.transpose(0, 2, 1)"
        )
    return Opened(
        read=lambda: arrays.read_samples(parts),
        preset="image" if tokens else "adding",
        vocabulary=BYTES if tokens else None,
        notes=tuple(notes),
        inferred=inferred,
    )
