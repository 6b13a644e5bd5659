"""IMDB reviews: a csv with a text and a label in each row, 3 000 of the Large Movie Review set.

    python examples/imdb_reviews.py [--quick]

The file has no splits; they are cut, with the same share of each class. Six of the set's test reviews are new inputs.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

import walkthrough

_REVIEWS, _QUICK = 3000, 60
_NAMES = ("negative", "positive")


def main(arguments: list[str] | None = None) -> walkthrough.Walkthrough:
    """Run the walkthrough."""
    source = walkthrough.find_data("imdb/imdb50k.parquet")
    walk = walkthrough.start("imdb-reviews", __doc__, arguments)
    count = _QUICK if walk.quick else _REVIEWS
    train, test = _read(source, "train"), _read(source, "test")
    draw = random.Random(0)
    _write(walk.folder / "reviews.csv", draw.sample(train, min(count, len(train))), ("text", "label"))
    new = draw.sample(test, 6)
    _write(walk.folder / "new.csv", [(number, text) for number, (text, _) in enumerate(new, 1)], ("id", "text"))
    walk.explain(f"reviews.csv has {count} reviews of the set's training part, new.csv six of its test part.")
    walk.run("head -c 300 reviews.csv")
    walk.train("IMDB reviews", "reviews.csv", "runs/reviews-1")
    walk.run("paramixer evaluate runs/reviews-1")
    walk.run("paramixer predict runs/reviews-1 new.csv --proba --out predictions.csv")
    walk.run("cat predictions.csv")
    walk.explain(f"What their authors thought: {', '.join(label for _, label in new)}.")
    return walk


def _read(source: Path, split: str) -> list[tuple[str, str]]:
    """Return texts and labels of one part of the set."""
    import pyarrow.parquet as parquet

    rows = parquet.read_table(source, columns=["text", "label"], filters=[("split", "=", split)]).to_pylist()
    return [(row["text"], _NAMES[row["label"]]) for row in rows]


def _write(path: Path, rows: list[tuple[object, str]], columns: tuple[str, str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


if __name__ == "__main__":
    walkthrough.main(main)
