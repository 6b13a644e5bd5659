"""How sequences are displayed."""

from __future__ import annotations

import torch

from paramixer.data.task import TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.report.sequence import view_sequence


def make_info(preset: str = "text", features: int | None = None, **vocabulary: object) -> TaskInfo:
    return TaskInfo(
        name="own",
        preset=preset,
        metric="accuracy",
        target="class",
        length=16,
        vocabulary=Vocabulary(**vocabulary) if vocabulary else None,
        features=features,
    )


def test_gray_values_are_an_image_if_they_make_a_square_of_an_image_task():
    numbers = tuple(map(str, range(256)))
    assert view_sequence(torch.arange(16), make_info("image", symbols=numbers, unit="number")).kind == "image"
    assert view_sequence(torch.arange(15), make_info("image", symbols=numbers, unit="number")).kind == "curve"
    assert view_sequence(torch.arange(16), make_info("text", symbols=numbers, unit="number")).kind == "curve"


def test_features_are_a_curve():
    assert view_sequence(torch.zeros(5, 3), make_info(features=3)).length == 5


def test_tokens_are_bases_text_or_words():
    info = make_info(symbols=("N", "A", "C"), pad_symbol="N", unknown_symbol="N")
    bases = view_sequence(torch.tensor([1, 2, 0]), info, 5)
    assert (bases.kind, bases.symbols) == ("bases", ("A", "C", "N", "N", "N"))
    text = view_sequence(torch.tensor([2, 3, 1]), make_info(symbols=("<pad>", "<unknown>", "<cls>", "x")), 4)
    assert (text.kind, text.symbols) == ("text", ("⌂", "x", "�", "·"))
    words = view_sequence(torch.tensor([0, 1, 1]), make_info(symbols=("[MAX", "5"), unit="word"))
    assert (words.kind, words.join_start(2)) == ("words", "[MAX 5…")
