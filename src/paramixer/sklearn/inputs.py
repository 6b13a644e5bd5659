"""What estimators are given as samples and targets, checked row by row."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as abbreviate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paramixer.data.formats.tabular.in_memory_columns import (
    find_labels,
    is_missing,
    name_row,
    read_column,
    refuse_missing,
)

Kind = Literal["texts", "sequences", "table"]
"""What an estimator was fitted on: texts; sequences of any length; or rows that are all equally long, which keep
scikit-learn's conventions."""


def infer_kind(X: Any) -> Kind:
    """Return what samples are, as ``in_memory_columns.read_column`` returned them."""
    if isinstance(X, np.ndarray) and X.ndim == 3:
        return "sequences"
    if not isinstance(X, list | tuple):
        return "table"
    first = next((sample for sample in X if not is_missing(sample)), None)
    if isinstance(first, str | bytes):
        return "texts"
    if not all(is_missing(sample) or _is_sequence(sample) for sample in X):
        return "table"
    present = [sample for sample in X if not is_missing(sample)]
    is_ragged = len({len(sample) for sample in present}) > 1 or any(_is_sequence(_head(sample)) for sample in present)
    # A missing sample among equally long ones is named by its row, which scikit-learn would not do.
    return "sequences" if is_ragged or (present and len(present) < len(X)) else "table"


def read_samples(X: Any) -> Any:
    """Return samples as a list where they are texts or sequences; what scikit-learn reads by itself as it is.

    A missing sample is refused, by its row.
    """
    column = read_column(X)
    if isinstance(column, list | tuple):
        if not column:
            raise ValueError("there is not a single sample")
        refuse_missing(column, labels=find_labels(X))
    return column


def check_texts(samples: Any) -> list[str]:
    """Return samples that are all texts."""
    if not isinstance(samples, list | tuple):
        raise ValueError("the estimator was fitted on texts; give a list or a column of texts")
    for row, sample in enumerate(samples):
        if not isinstance(sample, str):
            raise ValueError(f"sample {row} is {_describe(sample)}, not a text; the estimator is fitted on texts")
    return list(samples)


def check_sequences(samples: Any) -> list[NDArray[np.float64]]:
    """Return sequences of numbers, each ``[length, features]``."""
    if not isinstance(samples, list | tuple):
        samples = list(np.asarray(samples))
    arrays = [_check_sequence(sample, row) for row, sample in enumerate(samples)]
    features = arrays[0].shape[1]
    for row, array in enumerate(arrays):
        if array.shape[1] != features:
            raise ValueError(f"sample {row} has {array.shape[1]} numbers per position, and sample 0 has {features}")
    return arrays


def check_equal_lengths(samples: Any, width: int) -> None:
    """Raise a ValueError that names the row of a list that is longer or shorter than those that were learned from."""
    if not isinstance(samples, list | tuple):
        return
    widths = [len(sample) if _is_sequence(sample) else None for sample in samples]
    if len(set(widths)) > 1 and None not in widths:
        row = next(row for row, found in enumerate(widths) if found != width)
        raise ValueError(
            f"sample {row} has {widths[row]} numbers, but the estimator was fitted on rows of {width}; for sequences "
            "of any length, fit on sequences of several lengths or on arrays [length, 1]"
        )


def check_table(table: NDArray[np.float64], samples: Any, names: Sequence[str] | None) -> list[NDArray[np.float64]]:
    """Return the rows of a table as sequences ``[length, 1]``.

    Args:
        table: ``[samples, length]``.
        samples: what it was read from, for the names of its rows.
        names: of its columns, where it has them.
    """
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        where = f"at position {column}" if names is None else f"in column {str(names[column])!r}"
        raise ValueError(
            f"sample {name_row(row, find_labels(samples))} holds NaN or infinity {where}; fill it, or leave the row out"
        )
    return list(table[:, :, None])


def unwrap(y: Any) -> Any:
    """Return targets as scikit-learn takes them: Arrow and polars columns as arrays, other things as they are."""
    return np.asarray(y) if hasattr(y, "to_pylist") or type(y).__module__.startswith("polars") else y


def check_targets(y: Any, samples: int) -> NDArray[Any]:
    """Return one target for each of so many texts or sequences."""
    column = read_column(y)
    if isinstance(column, list) and any(isinstance(target, str) for target in column):
        # Of texts and NaN numpy makes texts.
        refuse_missing(column, "target", find_labels(y))
    targets = np.asarray(column)
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.ndim != 1 or len(targets) != samples:
        raise ValueError(f"{samples} samples but targets of shape {list(targets.shape)}")
    if targets.dtype.kind == "O":
        refuse_missing(targets, "target")
    if targets.dtype.kind == "f" and not np.isfinite(targets).all():
        raise ValueError(f"target {int(np.flatnonzero(~np.isfinite(targets))[0])} is NaN or infinite")
    return targets


def _check_sequence(sample: Any, row: int) -> NDArray[np.float64]:
    if isinstance(sample, str):
        raise ValueError(f"sample {row} is a text, but the estimator was fitted on numbers")
    if not _is_sequence(sample):
        raise ValueError(
            f"sample {row} is {_describe(sample)}, not a sequence of numbers; give a list of samples, not one sequence"
        )
    try:
        array = np.asarray(sample, np.float64)
    except (ValueError, TypeError):
        array = np.empty(())
    if array.ndim not in (1, 2):
        raise ValueError(f"sample {row} is neither a sequence of numbers nor of equally long lists of numbers")
    if not array.size:
        raise ValueError(f"sample {row} is empty")
    if not np.isfinite(array).all():
        raise ValueError(
            f"sample {row} holds NaN or infinity at position {int(np.argwhere(~np.isfinite(array))[0][0])}; fill it, "
            "or leave the sample out"
        )
    return array[:, None] if array.ndim == 1 else array


def _is_sequence(sample: Any) -> bool:
    return not isinstance(sample, str | bytes | dict) and hasattr(sample, "__len__") and getattr(sample, "ndim", 1) > 0


def _describe(sample: Any) -> str:
    """Return a value, cut where it is long, without the name of numpy's type."""
    return abbreviate(sample.item() if isinstance(sample, np.generic) else sample)


def _head(sample: Sequence[Any]) -> Any:
    return sample[0] if len(sample) else None
