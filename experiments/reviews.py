"""A stranger's file: 3 000 of the IMDB's training reviews in a csv, with no split of their own."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

from paramixer.data.formats.texts import read_texts
from paramixer.files import replace_file

_REVIEWS = 3000


def write_reviews(text: Path, folder: Path) -> Path:
    """Write the file once, always with the same reviews, and return its path.

    Args:
        text: the IMDB review set.
        folder: where the file goes.
    """
    path = folder / "reviews.csv"
    if not path.exists():
        samples = [sample for sample in read_texts(text, "text", "label") if sample.split in (None, "train")]
        chosen = random.Random(0).sample(range(len(samples)), min(_REVIEWS, len(samples)))
        folder.mkdir(parents=True, exist_ok=True)
        rows = io.StringIO(newline="")
        writer = csv.writer(rows)
        writer.writerow(["text", "label"])
        writer.writerows([samples[number].sequence, samples[number].target] for number in chosen)
        replace_file(path, rows.getvalue().encode())
    return path
