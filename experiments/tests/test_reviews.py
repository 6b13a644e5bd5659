"""The file of 3 000 reviews."""

from __future__ import annotations

import csv

from experiments import reviews
from experiments.reviews import write_reviews


def test_the_file_has_training_reviews_each_once_and_is_always_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(reviews, "_REVIEWS", 30)
    source = tmp_path / "text.csv"
    rows = [(f'a "film", number {n}', n % 2, "train" if n < 40 else "test") for n in range(60)]
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label", "split"), *rows])
    path = write_reviews(source, tmp_path / "runs")
    with path.open(newline="") as file:
        header, *written = csv.reader(file)
    assert header == ["text", "label"]
    assert len({text for text, _ in written}) == 30
    assert {(text, label) for text, label in written} <= {(text, str(label)) for text, label, _ in rows[:40]}
    again = write_reviews(source, tmp_path / "others")
    assert again.read_bytes() == path.read_bytes()
