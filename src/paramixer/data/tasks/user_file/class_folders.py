"""Folders and archives with a folder for each class as samples: texts, images or sounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from paramixer.data.errors import DataError
from paramixer.data.formats import archives, class_folders, media, texts
from paramixer.data.formats.tabular.tables import name_files
from paramixer.data.samples import Sample
from paramixer.data.tasks.user_file.opened import LONGEST, Opened, Options

_TEXTS = "texts"


def open_folder(paths: Sequence[Path], options: Options) -> Opened:
    """Return how a folder or archive with a folder for each class is read."""
    if len(paths) > 1:
        raise DataError("folders are read one at a time; put the folders of the classes into one", name_files(paths))
    source = paths[0]
    what = "in folders the class is the name of the folder, and the split that of the folder above it"
    options.refuse(["text", "label", "labels", "split", "id"], what, source)
    counts = _count_kinds(source)
    if not counts:
        raise DataError(
            "no texts (.txt), images or sounds in folders of classes; expected CLASS/NAME or SPLIT/CLASS/NAME",
            source,
        )
    (kind, found), *others = counts.most_common()
    # The current folder, ".", has no name of its own.
    name = source.name or source.resolve().name
    notes = tuple(f"{name} was read as {kind}; {count} {other} in it were left out" for other, count in others if count)
    inferred = {"kind": f"{kind} by folders" if found else kind, "files": 1, "input": f"the {kind}"}
    inferred["target"] = "the folder of the class"
    files = partial(class_folders.walk, source, _suffixes(kind))
    if any(file.split is not None for file in files()):
        inferred["split"] = "the folders above those of the classes"
    if kind == _TEXTS:
        options.refuse(["image_size", "rate"], "the folder holds texts", source)
        if options.alphabet not in (None, "text"):
            raise DataError(f"--alphabet {options.alphabet} is for tables and FASTA; put such sequences there", source)
        return Opened(
            read=lambda: texts.read_folders(source, options.encoding),
            preset="text",
            notes=notes,
            inferred={**inferred, "alphabet": "text"},
        )
    options.refuse(["alphabet"], f"{kind} have no alphabet", source)
    contents = ((f"{source}, {file.name}", file.read()) for file in files())
    decoder = media.build_decoder(kind, lambda: contents, options.image_size, options.rate, LONGEST, options.length)
    return Opened(
        read=lambda: _read_files(source, decoder),
        preset=decoder.preset,
        vocabulary=decoder.vocabulary,
        settings=decoder.settings,
        notes=notes,
        inferred={**inferred, **decoder.inferred},
    )


def is_folder(path: Path) -> bool:
    """Return whether it is a folder, or an archive of one."""
    return archives.is_archive(path)


def _suffixes(kind: str) -> tuple[str, ...]:
    return texts.SUFFIXES if kind == _TEXTS else media.SUFFIXES[kind]


def _count_kinds(source: Path) -> Counter[str]:
    """Return how many files there are of each kind in folders of classes."""
    counts: Counter[str] = Counter()
    for kind in (_TEXTS, *media.SUFFIXES):
        if count := sum(1 for _ in class_folders.walk(source, _suffixes(kind))):
            counts[kind] = count
    return counts


def _read_files(source: Path, decoder: media.Decoder) -> Iterator[Sample]:
    for file in class_folders.walk(source, decoder.suffixes):
        place = f"{source}, {file.name}"
        yield Sample(decoder.decode(file.read(), place), file.label, place, file.split, file.name)
