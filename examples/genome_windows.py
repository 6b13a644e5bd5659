"""Genome windows: which organism is a piece of DNA from, thale cress or a nematode? Of 512 and of 4 096 bases.

    python examples/genome_windows.py [--quick]

Windows of one region resemble each other, so they are not shuffled: the first eight tenths of each chromosome are for
training, the next one for validation, the last one for testing, and every header says so by `split=`. The windows of
512 bases are in one file, with the organism in the header; those of 4 096 are in a file for each organism.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import walkthrough

_SOURCES = {
    "arabidopsis": "genome/arabidopsis_thaliana_chr5_TAIR9.fa.gz",
    "elegans": "genome/caenorhabditis_elegans_chrX_ce2.fa.gz",
}
# Windows of each organism by split, and the part of the chromosome that they are from.
_PARTS = {"train": (0.0, 0.8), "validation": (0.8, 0.9), "test": (0.9, 1.0)}
_COUNTS = {512: (5000, 500, 1000), 4096: (1600, 200, 400)}
_QUICK = (12, 4, 4)


def main(arguments: list[str] | None = None) -> walkthrough.Walkthrough:
    """Run the walkthrough."""
    sources = {name: walkthrough.find_data(path) for name, path in _SOURCES.items()}
    walk = walkthrough.start("genome-windows", __doc__, arguments)
    chromosomes = {name: _read(path) for name, path in sources.items()}

    counts = _QUICK if walk.quick else _COUNTS[512]
    records = [record for name, bases in chromosomes.items() for record in _cut(name, bases, 512, counts)]
    _write(walk.folder / "windows.fa.gz", [f">{place} species={name} {more}" for place, name, more in records])
    walk.explain("windows.fa.gz has windows of 512 bases of both organisms.")
    walk.run("zcat windows.fa.gz | head -n 1")
    walk.train("genome windows of 512 bases", "windows.fa.gz --label species", "runs/windows.fa-1")
    walk.run("paramixer evaluate runs/windows.fa-1")
    walk.explain("A piece of each test region comes through standard input, without headers that would tell.")
    _write_new(walk.folder / "new.fa", chromosomes, 512)
    walk.run("paramixer predict runs/windows.fa-1 - --format fasta < new.fa")

    counts = _QUICK if walk.quick else _COUNTS[4096]
    for name, bases in chromosomes.items():
        records = _cut(name, bases, 4096, counts)
        _write(walk.folder / f"{name}.fa.gz", [f">{place} {more}" for place, _, more in records])
    walk.explain("arabidopsis.fa.gz and elegans.fa.gz have windows of 4 096 bases; the class is the name of the file.")
    files = "arabidopsis.fa.gz elegans.fa.gz"
    walk.train("genome windows of 4 096 bases", files, "runs/arabidopsis.fa-1")
    walk.run("paramixer evaluate runs/arabidopsis.fa-1")
    return walk


def _read(path: Path) -> str:
    """Return the bases of a chromosome."""
    with gzip.open(path, "rt") as file:
        return "".join(line.strip() for line in file if not line.startswith(">")).upper()


def _cut(name: str, bases: str, length: int, counts: tuple[int, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield place, name, and split and bases of windows without gaps, spread over the part of each split."""
    for (split, (first, last)), count in zip(_PARTS.items(), counts, strict=True):
        places = range(int(first * len(bases)), int(last * len(bases)) - length, length)
        known = [place for place in places if set(bases[place : place + length]) <= set("ACGT")]
        for place in sorted(random.Random(0).sample(known, min(count, len(known)))):
            yield f"{name}:{place}", name, f"split={split}\n{bases[place : place + length]}"


def _write(path: Path, records: list[str]) -> None:
    with gzip.open(path, "wt") as file:
        file.write("\n".join(records) + "\n")


def _write_new(path: Path, chromosomes: dict[str, str], length: int) -> None:
    pieces = {name: bases[int(0.95 * len(bases)) :][:length] for name, bases in chromosomes.items()}
    path.write_text("".join(f">piece-of-{name}\n{bases}\n" for name, bases in pieces.items()))


if __name__ == "__main__":
    walkthrough.main(main)
