"""FASTA as samples: one file or several, with labels in headers, in a table, or a file for each class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from paramixer.data.errors import DataError
from paramixer.data.formats import fasta, fasta_labels
from paramixer.data.formats.fasta import DNA, PROTEIN, Letters
from paramixer.data.formats.tabular.tables import name_files, name_split
from paramixer.data.samples import Sample
from paramixer.data.splits import parse_split
from paramixer.data.tasks.user_file.opened import Opened, Options
from paramixer.data.vocabulary import AMINO_ACIDS, BASES

# A FASTA record with a larger share of letters that are not bases is something else.
_MOST_UNKNOWN = 0.2
_BY_FILE = "file"


def open_fasta(paths: Sequence[Path], options: Options) -> Opened:
    """Return how FASTA files are read, one after another."""
    source = name_files(paths)
    options.refuse(["text"], "FASTA has no columns; --text is for tables", source)
    options.refuse(["image_size", "rate"], "FASTA holds neither images nor sounds", source)
    if options.labels is None and options.id is not None:
        raise DataError("a record's id is the first word of its header; --id is for the table of --labels", source)
    if options.alphabet == "text":
        raise DataError("FASTA holds DNA or proteins; put other sequences into a table", source)
    known = {"dna": DNA, "protein": PROTEIN}
    letters = known[options.alphabet] if options.alphabet else fasta.find_letters(paths[0])
    by_file = options.labels is None and _are_classes(paths, options)
    split = options.split
    if (
        split is None
        and options.labels is None
        and fasta_labels.name_splits(fasta.read_records(paths[0], letters=PROTEIN))
    ):
        split = "split"
    table_labeler = None
    if options.labels is not None:
        label, id = options.label or "label", options.id or "id"
        table_labeler = fasta_labels.make_table_labeler(options.labels, id, label, options.split)
    labelers = [
        table_labeler
        or (
            fasta_labels.make_file_labeler(path, split)
            if by_file
            else fasta_labels.make_header_labeler(path, options.label, split)
        )
        for path in paths
    ]
    splits = [name_split(path) for path in paths]
    if by_file or len(paths) == 1 or None in splits:
        splits = [None] * len(paths)
    target = "the name of the file" if by_file else "the header"
    if options.labels is not None:
        target = f"the table {options.labels.name}"
    inferred = {
        "kind": "FASTA",
        "files": len(paths),
        "input": "the records",
        "target": target,
        "alphabet": "dna" if letters is DNA else "protein",
    }
    if splits[0] is not None:
        inferred["split"] = "the names of the files"
    elif split is not None:
        inferred["split"] = f"{split}= in the headers"
    return Opened(
        read=lambda: (
            sample
            for path, labeler, of_file in zip(paths, labelers, splits, strict=True)
            for sample in _read_file(path, options.strict, letters, labeler, of_file)
        ),
        preset="hfdna" if letters is DNA else "text",
        vocabulary=BASES if letters is DNA else AMINO_ACIDS,
        settings={"alphabet": inferred["alphabet"]},
        inferred=inferred,
    )


def _are_classes(paths: Sequence[Path], options: Options) -> bool:
    """Return whether each file is a class: if the user says so, or several files have no labels in their headers."""
    if options.label is None and len(paths) > 1:
        by_file = not fasta_labels.has_label(_read_first(paths[0]))
    else:
        by_file = options.label == _BY_FILE
    if by_file and len(paths) == 1:
        raise DataError("--label file takes several files, one for each class; give the others too", paths[0])
    return by_file


def _read_first(path: Path) -> fasta.Record:
    return next(fasta.read_records(path, letters=PROTEIN))


def _read_file(
    path: Path, strict: bool, letters: Letters, find_label: fasta_labels.Labeler, of_file: str | None
) -> Iterator[Sample]:
    for record in fasta.read_records(path, strict, letters):
        place = f"{path}, {record.place}"
        if record.unknown > _MOST_UNKNOWN * len(record.sequence):
            raise DataError(
                f"{record.unknown} of {len(record.sequence)} letters are not {letters.plural}; put other sequences "
                "into a table, or say what they are with --alphabet",
                place,
            )
        label, split = find_label(record)
        split = parse_split(split, place) if split is not None else of_file
        yield Sample(record.sequence, label, place, split, record.name)
