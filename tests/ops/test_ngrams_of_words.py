"""N-grams of words against a list of words, for every backend, length and kind of row."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.library import opcheck

import paramixer as pm
from ops import cases
from ops.instruction_sets import needs_engine
from paramixer.ops import cpu, reference
from paramixer.ops.ngram_layout import NgramLayout
from paramixer.ops.ngrams import count_ngrams, ngram_rows, ngram_rows_op

# Ids of these characters; A is a, and blank and comma stand between words.
SYMBOLS = " ,abcdeA"
LETTERS = torch.tensor([0, 0, 1, 2, 3, 4, 5, 1])
LAYOUT = NgramLayout((2,), vocabulary=len(SYMBOLS), rows=2**16, words=3)
each_backend = pytest.mark.parametrize("backend", cases.AVAILABLE)


def encode(*texts: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids ``[batch, length]`` and lengths; past the ends stand ids that the vocabulary does not have."""
    tokens = torch.full((len(texts), max(map(len, texts))), 99)
    for row, text in zip(tokens, texts, strict=True):
        row[: len(text)] = torch.tensor([SYMBOLS.index(character) for character in text], dtype=torch.int64)
    return tokens, torch.tensor([len(text) for text in texts])


def list_words(text: str) -> list[tuple[int, str]]:
    """Last position and letters of every word."""
    return [(match.end() - 1, match.group().lower()) for match in re.finditer("[a-eA]+", text)]


@each_backend
def test_an_ngram_of_words_ends_where_its_last_word_ends(backend):
    texts = ["ab, cd ab cd", " a", "", "  ", "Ab cd", "abcd"]
    tokens, lengths = encode(*texts)
    with pm.backend(backend):
        rows = ngram_rows(tokens, LAYOUT, lengths, letters=LETTERS)
    assert rows.shape == (*tokens.shape, 4)
    numbers: dict[tuple[str, ...], set[int]] = {}
    for text, of_text in zip(texts, rows[..., 1:].tolist(), strict=True):
        words = list_words(text)
        expected = {(place, order) for number, (place, _) in enumerate(words) for order in range(min(number + 1, 3))}
        assert expected == {(i, order) for i, row in enumerate(of_text) for order in range(3) if row[order] >= 0}
        for number, (place, _) in enumerate(words):
            for order in range(min(number + 1, 3)):
                ngram = tuple(word for _, word in words[number - order : number + 1])
                numbers.setdefault(ngram, set()).add(of_text[place][order])
    # The same words have the same row, in upper or lower case and wherever they stand; others another.
    assert all(len(rows) == 1 for rows in numbers.values())
    assert len(set.union(*numbers.values())) == len(numbers)
    for ngram, (row,) in numbers.items():
        block = LAYOUT.blocks[len(ngram)]
        assert block.of_words
        assert block.start <= row < block.start + block.rows


@needs_engine
@given(
    texts=st.lists(st.text(SYMBOLS, max_size=40), min_size=1, max_size=4),
    words=st.integers(1, 5),
    with_admitted=st.booleans(),
)
def test_backends_agree(texts, words, with_admitted):
    tokens, lengths = encode(*texts)
    layout = NgramLayout((2, 3), len(SYMBOLS), 40, words)
    admitted = (torch.arange(layout.total) % 2).to(torch.uint8) if with_admitted else None
    rows = cpu.ngram_rows(tokens, lengths, layout, admitted, LETTERS)
    assert torch.equal(rows, reference.ngram_rows(tokens, lengths, layout, admitted, LETTERS))


@each_backend
def test_words_are_counted_once_per_sequence(backend):
    tokens, lengths = encode("ab ab ab", "ab cd", "")
    with pm.backend(backend):
        counts = count_ngrams([(tokens, lengths)], LAYOUT, letters=LETTERS)
        rows = ngram_rows(tokens, LAYOUT, lengths, letters=LETTERS)
    assert int(counts[rows[0, 1, 1]]) == 2
    assert int(counts[rows[1, 4, 1]]) == 1
    assert int(counts[LAYOUT.blocks[2].start :].sum()) == 3


def test_opcheck():
    tokens, lengths = encode("ab cd", "a")
    tokens[1, 1:] = 0
    opcheck(ngram_rows_op, (tokens, lengths, LETTERS, None, [2], len(SYMBOLS), 40, 2))


@pytest.mark.parametrize(
    ("letters", "words", "message"),
    [
        (None, 2, "words=2 and letters go together"),
        (LETTERS, 0, "words=0 and letters go together"),
        (LETTERS[1:], 2, r"letters is torch.int64 \[7\], expected torch.int64 \[8\]"),
        (LETTERS.int(), 2, "letters is torch.int32"),
    ],
)
def test_letters_and_words_go_together(letters, words, message):
    tokens, lengths = encode("ab")
    with pytest.raises(ValueError, match=message):
        ngram_rows(tokens, NgramLayout((2,), len(SYMBOLS), 40, words), lengths, letters=letters)


def test_too_many_words_are_refused():
    with pytest.raises(ValueError, match="words=65; an n-gram has at most 64 words"):
        NgramLayout((2,), 8, 40, 65)


@needs_engine
def test_the_kernel_refuses_words_without_letters():
    engine = cpu._engine
    tokens, out = torch.zeros(1, 3, dtype=torch.int64), torch.zeros(1, 3, 1, dtype=torch.int32)
    with pytest.raises(ValueError, match="a block of words needs letters"):
        engine.ngram_rows(tokens, None, None, None, [(2, 0, 30, False, True)], 6, out)
    with pytest.raises(ValueError, match="letters has not one number for each token"):
        engine.ngram_rows(tokens, None, torch.zeros(5, dtype=torch.int64), None, [(2, 0, 30, False, True)], 6, out)
