"""Tables as samples: texts, lists of numbers, or paths of images and sounds in one column, targets in another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from paramixer.data.errors import DataError
from paramixer.data.formats import alphabets, media
from paramixer.data.formats.tabular import infer_columns, tables
from paramixer.data.formats.tabular.cells import LOOK_AHEAD, are_number_lists, parse_label, parse_sequence, parse_weight
from paramixer.data.samples import Sample
from paramixer.data.splits import parse_split
from paramixer.data.tasks.user_file.opened import LONGEST, Opened, Options
from paramixer.data.vocabulary import AMINO_ACIDS, BASES


def open_tables(paths: Sequence[Path], options: Options) -> Opened:
    """Return how tables of the same columns are read."""
    table = tables.open_tables(paths, options.encoding)
    options.refuse(
        ["labels"], "a table holds its labels in a column; name it with --label, without --labels", table.name
    )
    columns = infer_columns.choose_columns(
        table, options.text, options.label, options.split, options.id, options.weight
    )
    values = [value for _, (value,) in islice(table.read([columns.text]), LOOK_AHEAD)]
    notes = [f"the split {name!r} of the dataset was left out" for name in table.skipped]
    if columns.split is None:
        others = [name for name in table.read_names() if name not in columns]
        notes += [
            f"column {name!r} names neither train, validation nor test, and was not used"
            for name in infer_columns.find_split_columns(others)
        ]
    inferred: dict[str, Any] = {
        "kind": tables.describe_kind(paths[0]),
        "files": len(paths),
        "input": f"column {columns.text!r}",
        "target": f"column {columns.label!r}",
    }
    if table.splits and columns.split == tables.SPLIT:
        inferred["split"] = "the splits of the dataset" if paths[0].is_dir() else "the names of the files"
    elif columns.split is not None:
        inferred["split"] = f"column {columns.split!r}"
    settings: dict[str, Any] = columns._asdict()
    if columns.weight is None:
        # The settings enter the fingerprint.
        del settings["weight"]
    if kind := media.find_kind(values):
        folders = tuple(dict.fromkeys(path.parent for path in paths))
        files = partial(media.read_column, table, columns.text, folders)
        decoder = media.build_decoder(kind, files, options.image_size, options.rate, LONGEST, options.length)
        return Opened(
            read=lambda: _read_rows(table, columns, partial(media.read_listed, decoder, folders)),
            preset=decoder.preset,
            vocabulary=decoder.vocabulary,
            settings={**settings, **decoder.settings},
            notes=tuple(notes),
            inferred={**inferred, **decoder.inferred},
        )
    what = "a column of this table holds no files"
    options.refuse(["image_size", "rate"], f"{what} of images or sounds", table.name)
    as_numbers = are_number_lists(values)
    if as_numbers or isinstance(values[0], list):
        options.refuse(["alphabet"], "numbers have no alphabet", table.name)
        read = partial(parse_cell, as_numbers=as_numbers, column=columns.text)
        return Opened(
            read=lambda: _read_rows(table, columns, read),
            preset="adding",
            settings=settings,
            notes=tuple(notes),
            inferred={**inferred, "alphabet": "numbers"},
        )
    alphabet = options.alphabet or alphabets.infer(values)
    return Opened(
        read=lambda: _read_rows(
            table,
            columns,
            partial(parse_cell, as_numbers=False, column=columns.text, alphabet=alphabet, strict=options.strict),
        ),
        preset="hfdna" if alphabet == "dna" else "text",
        vocabulary={"dna": BASES, "protein": AMINO_ACIDS}.get(alphabet),
        settings={**settings, "alphabet": alphabet},
        notes=tuple(notes),
        inferred={**inferred, "alphabet": alphabet},
    )


def parse_cell(
    value: object, place: str, as_numbers: bool, column: str, alphabet: str = "text", strict: bool = False
) -> Any:
    """Return the text or the numbers in a cell."""
    sequence = parse_sequence(value, as_numbers, column, place)
    if isinstance(sequence, str) and alphabet != "text":
        if strict and (letter := alphabets.find_foreign(sequence, alphabet)):
            raise DataError(
                f"{letter!r} is not a letter of {alphabets.NAMES[alphabet]}; it is unknown unless strict", place
            )
        return alphabets.normalize(sequence, alphabet)
    return sequence


def _read_rows(table: tables.Tables, columns: infer_columns.Columns, parse: Any) -> Iterator[Sample]:
    optional = [name for name in (columns.split, columns.id, columns.weight) if name is not None]
    for place, (value, label, *rest) in table.read([columns.text, columns.label, *optional]):
        values = dict(zip(optional, rest, strict=True))
        yield Sample(
            parse(value, place),
            parse_label(label, columns.label, place),
            place,
            None if columns.split is None else parse_split(values[columns.split], place),
            "" if columns.id is None else str(values[columns.id]),
            None if columns.weight is None else parse_weight(values[columns.weight], columns.weight, place),
        )
