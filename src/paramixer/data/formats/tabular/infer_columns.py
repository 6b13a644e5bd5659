"""Infers which column of a table holds what, if the user does not say."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from paramixer.data.errors import DataError
from paramixer.data.formats import media
from paramixer.data.formats.tabular.cells import LOOK_AHEAD, parse_numbers
from paramixer.data.formats.tabular.columns import join_names
from paramixer.data.formats.tabular.tables import Tables
from paramixer.data.splits import names_split

# Groups of names. The first group of which the table has exactly one name is taken.
_TEXTS = (
    ("text", "sequence", "seq"),
    ("review", "sentence", "document", "dna", "rna", "protein", "values", "signal", "series"),
    ("content", "comment", "body", "article", "input", "inputs", "x", "data"),
)
_LABELS = (
    ("label", "class", "target", "y"),
    ("labels", "value", "stars", "score", "rating", "sentiment", "category", "output"),
)
# Texts shorter than this on average are names, codes or labels.
_SHORT = 20
# So many columns of numbers may be the steps of a series.
_WIDE = 8


class Columns(NamedTuple):
    """The names of the columns that are read."""

    text: str
    label: str
    split: str | None
    id: str | None
    weight: str | None = None


def choose_columns(
    table: Tables,
    text: str | None,
    label: str | None,
    split: str | None,
    id: str | None,
    weight: str | None = None,
) -> Columns:
    """Return the columns that were named, and guesses for the others; that of weights is never guessed.

    Raises:
        DataError: a guess could be wrong; the message names the columns and the flag that helps.
    """
    if text is not None and text == label:
        raise DataError(f"--text and --label both name {text!r}; each target would be its own input", table.name)
    given = [name for name in (text, label, split, id, weight) if name is not None]
    # Columns that do not exist are refused before anything is inferred from the others.
    next(table.read(given, nulls=True))
    names = [name for name in table.read_names() if name not in given]
    if id is None:
        id = next((name for name in names if name.lower() == "id"), None)
    if split is None:
        split = next((name for name in find_split_columns(names) if _holds_splits(table, name)), None)
    rest = [name for name in names if name not in (split, id)]
    if text is None:
        text = _find_named(table, rest, _TEXTS, "texts or sequences", "--text") or _find_only_long(table, rest)
        rest.remove(text)
    if label is None:
        label = _find_named(table, rest, _LABELS, "labels or values", "--label")
        if label is None:
            if len(rest) != 1:
                raise _make_unclear_error(table, rest, "labels or values", "--label")
            label = rest[0]
    return Columns(text, label, split, id, weight)


def _find_named(
    table: Tables, names: list[str], tiers: tuple[tuple[str, ...], ...], what: str, flag: str
) -> str | None:
    for tier in tiers:
        matches = [name for name in names if name.lower() in tier]
        if len(matches) > 1:
            raise _make_unclear_error(table, matches, what, flag)
        if matches:
            return matches[0]
    return None


def _find_only_long(table: Tables, names: list[str]) -> str:
    columns = [name for name in names if _is_long(table, name)]
    files = [name for name in names if find_files(table, name)]
    # Texts are meant rather than the files beside them.
    columns = [name for name in columns if name not in files] or files or columns
    if len(columns) != 1:
        steps = [name for name in names if _holds_single_numbers(table, name)]
        if not columns and len(steps) >= _WIDE:
            raise DataError(
                f"{len(steps)} columns hold one number per row ({join_names(steps[:3])}, ...); a series with a column "
                "for each step is read from .npz [series, steps], or as a list such as [0.1, 2] in one column",
                table.name,
            )
        raise _make_unclear_error(table, columns or names, "texts or sequences", "--text")
    return columns[0]


def find_files(table: Tables, name: str) -> str | None:
    """Return which kind of files a column names; None if it holds anything else."""
    return media.find_kind(_read_first(table, name))


def _is_long(table: Tables, name: str) -> bool:
    values = _read_first(table, name)
    lengths = [len(value) for value in values if isinstance(value, str | list)]
    if len(lengths) < len(values) or not values:
        return False
    return isinstance(values[0], list) or sum(lengths) >= _SHORT * len(lengths)


def _holds_single_numbers(table: Tables, name: str) -> bool:
    values = _read_first(table, name)
    return bool(values) and all(_is_single_number(value) for value in values)


def _is_single_number(value: object) -> bool:
    if isinstance(value, str):
        return (numbers := parse_numbers(value)) is not None and len(numbers) == 1
    return isinstance(value, int | float)


def find_split_columns(names: list[str]) -> list[str]:
    """Return the names that a column of splits has."""
    return [name for name in names if name.lower() == "split"]


def _holds_splits(table: Tables, name: str) -> bool:
    """Return whether any row names a split. A row that then does not is refused when it is read."""
    return any(names_split(value) for _, (value,) in table.read([name], nulls=True))


def _read_first(table: Tables, name: str) -> list[object]:
    rows = islice(table.read([name], nulls=True), LOOK_AHEAD)
    return [value for _, (value,) in rows if value is not None]


def _make_unclear_error(table: Tables, names: list[str], what: str, flag: str) -> DataError:
    candidates = join_names(names) or "none left"
    return DataError(f"which column holds the {what}? It could be {candidates}; name it with {flag}", table.name)
