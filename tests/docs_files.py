"""The files that commands of the docs name, in small."""

from __future__ import annotations

import csv
import io
import pickle
import random
import tarfile
from pathlib import Path

import numpy as np
import soundfile
from PIL import Image

_LETTERS = "abcdefghijklmnopqrstuvwxyz "


def write_all(folder: Path) -> None:
    """Write every file and folder that README.md and docs/ mention."""
    draw = random.Random(0)
    _write_table(folder / "reviews.csv", ("review", "stars"), draw, ("1", "2"))
    _write_table(folder / "imdb.csv", ("text", "label"), draw, ("neg", "pos"))
    _write_table(folder / "new.csv", ("review",), draw, ())
    _write_reviews(folder / "aclImdb_v1.tar.gz", draw)
    _write_cifar(folder / "cifar-10-python.tar.gz")
    for field in ("cs.AI", "cs.NE", "math.AC", "math.GR"):
        (folder / "papers" / field).mkdir(parents=True)
        for number in range(12):
            (folder / "papers" / field / f"{number}.txt").write_text("".join(draw.choices(_LETTERS, k=80)))
    for number in (1, 2):
        _write_table(folder / f"part{number}.csv", ("review", "stars"), draw, ("1", "2"))
    for species in ("fly", "human"):
        records = (f">{species}{number}\n{''.join(draw.choices('ACGT', k=90))}\n" for number in range(20))
        (folder / f"{species}.fa").write_text("".join(records))
    _write_class_folders(folder, draw)
    for name in ("hfdna", "mtcdna", "folder"):
        (folder / name).mkdir()
        for species in ("one", "two"):
            records = (f">{species}{number}\n{''.join(draw.choices('ACGT', k=5100))}\n" for number in range(12))
            (folder / name / f"{species}.fa").write_text("".join(records))


def _write_class_folders(folder: Path, draw: random.Random) -> None:
    """Write folders of letters in Latin-1, of pictures and of voices."""
    noise = np.random.default_rng(0)
    for number in range(24):
        for kind in ("letters", "pictures", "voices"):
            (folder / kind / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        name = Path("ab"[number % 2], str(number))
        text = "né " + "".join(draw.choices(_LETTERS, k=40))
        (folder / "letters" / name).with_suffix(".txt").write_text(text, encoding="latin-1")
        pixels = noise.integers(0, 256, (20, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save((folder / "pictures" / name).with_suffix(".png"))
        soundfile.write((folder / "voices" / name).with_suffix(".wav"), noise.uniform(-1, 1, 800), 8000)


def _write_table(path: Path, columns: tuple[str, ...], draw: random.Random, classes: tuple[str, ...]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for number in range(60):
            text = "".join(draw.choices(_LETTERS, k=20 + number % 9))
            writer.writerow([text, *([classes[number % len(classes)]] if classes else [])])


def _write_reviews(path: Path, draw: random.Random) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for split in ("train", "test"):
            for label in ("neg", "pos"):
                for number in range(12):
                    text = "".join(draw.choices(_LETTERS, k=60)).encode()
                    _add(archive, f"aclImdb/{split}/{label}/{number}_1.txt", text)


def _write_cifar(path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 3072), dtype=np.uint8)
    with tarfile.open(path, "w:gz") as archive:
        for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
            batch = {b"data": pixels, b"labels": [number % 10 for number in range(20)]}
            _add(archive, f"cifar-10-batches-py/{name}", pickle.dumps(batch, protocol=2))


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
