"""Symbols and their ids: always the same ones, and raw input is read as it was when the data was prepared."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paramixer.data.vocabulary import BASES, BYTES, CLS, PAD, UNKNOWN, Vocabulary


def test_characters_are_sorted_behind_the_special_symbols():
    vocabulary = Vocabulary.from_characters(["za", "Äb", "z\n"])
    assert vocabulary.symbols == (PAD, UNKNOWN, CLS, "\n", "a", "b", "z", "Ä")
    assert (vocabulary.pad, vocabulary.unknown, vocabulary.cls, len(vocabulary)) == (0, 1, 2, 8)
    without = Vocabulary.from_characters(["b", "a"], with_cls=False)
    assert without.symbols == (PAD, UNKNOWN, "a", "b")
    assert without.cls is None


def test_characters_do_not_depend_on_the_order_of_texts():
    assert Vocabulary.from_characters(["abc", "xyz"]) == Vocabulary.from_characters(["zyx", "cab"])


def test_letters_fold_case_and_separators_have_none():
    vocabulary = Vocabulary.from_characters(["Ab a1", "É é,"])
    letters = dict(zip(vocabulary.symbols, vocabulary.letters, strict=True))
    assert letters["A"] == letters["a"] > 0
    assert letters["É"] == letters["é"] > 0
    assert len({letters[symbol] for symbol in "ab1é"}) == 4
    assert {letters[symbol] for symbol in (PAD, UNKNOWN, CLS, " ", ",")} == {0}


def test_dna_and_numbers_have_no_words():
    assert BASES.letters is None
    assert BYTES.letters is None
    assert Vocabulary.from_characters(["ACDEFGHIKL"]).letters is None


def test_unknown_characters_have_one_id():
    vocabulary = Vocabulary.from_characters(["ab"])
    assert vocabulary.encode("aéb\U0001f600").tolist() == [2, 3, 1, 4, 1]


def test_an_unknown_symbol_is_named_with_its_position_where_it_has_no_id():
    with pytest.raises(ValueError, match=r"'X' at position 2 is not in the vocabulary"):
        Vocabulary(symbols=tuple("ACGT")).encode("ACXG")
    with pytest.raises(ValueError, match=r"'five' at position 1 is not in the vocabulary"):
        Vocabulary(symbols=("one", "two"), unit="word").encode("one five")


def test_astral_characters_are_one_symbol():
    vocabulary = Vocabulary.from_characters(["\U0001f600a\U0010ffff"])
    assert vocabulary.symbols[3:] == ("a", "\U0001f600", "\U0010ffff")
    assert vocabulary.encode("\U0010ffff\U0001f600a").tolist() == [2, 5, 4, 3]


def test_half_of_a_surrogate_pair_is_unknown_and_no_fault():
    assert Vocabulary.from_characters(["a"]).encode("\ud800a").tolist() == [2, 1, 3]


def test_special_symbols_cannot_be_written_in_raw_input():
    vocabulary = Vocabulary.from_characters(["<cls>"])
    assert len(vocabulary.encode("<cls>")) == 6
    assert vocabulary.encode("<cls>").tolist().count(vocabulary.cls) == 1


def test_case_is_folded_where_the_vocabulary_says_so():
    bases = Vocabulary(symbols=(PAD, *"ACGT"), fold_case=True)
    assert bases.encode("acGT").tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="'a'"):
        Vocabulary(symbols=(PAD, *"ACGT")).encode("a")
    words = Vocabulary(symbols=("MAX", "]"), unit="word", fold_case=True)
    assert words.encode("max ]").tolist() == [0, 1]


def test_letters_that_fold_to_several_are_still_cut_to_the_length():
    vocabulary = Vocabulary(symbols=(PAD, UNKNOWN, CLS, "S"), fold_case=True)
    assert vocabulary.encode("ßß", 4).tolist() == [2, 3, 3, 3]


def test_words_and_numbers_stand_between_blanks():
    words = Vocabulary(symbols=(PAD, UNKNOWN, "[MAX", "]"), unit="word")
    assert words.encode("  [MAX\t] MIN\n").tolist() == [2, 3, 1]
    numbers = Vocabulary(symbols=tuple(map(str, range(256))), unit="number")
    assert numbers.encode("0 255 17").tolist() == [0, 255, 17]
    with pytest.raises(ValueError, match="'256' at position 0"):
        numbers.encode("256")


@pytest.mark.parametrize(("length", "kept"), [(None, [2, 3, 4, 5]), (9, [2, 3, 4, 5]), (3, [2, 3, 4]), (1, [2])])
def test_a_cut_sequence_keeps_cls_and_its_beginning(length, kept):
    assert Vocabulary.from_characters(["abc"]).encode("abc", length).tolist() == kept
    words = Vocabulary(symbols=(PAD, UNKNOWN, CLS, "a", "b", "c"), unit="word")
    assert words.encode("a b c", length).tolist() == kept


def test_what_is_cut_away_may_be_unknown():
    assert Vocabulary(symbols=tuple("ab")).encode("abX", 2).tolist() == [0, 1]


@pytest.mark.parametrize(("count", "dtype"), [(256, "uint8"), (257, "uint16"), (65536, "uint16"), (65537, "int32")])
def test_ids_are_stored_in_the_smallest_type_that_holds_them(count, dtype):
    vocabulary = Vocabulary(symbols=tuple(map(str, range(count))), unit="number")
    assert vocabulary.dtype == dtype
    assert np.iinfo(dtype).max >= vocabulary.encode(str(count - 1))[0] == count - 1


def test_one_letter_may_pad_and_stand_for_the_unknown():
    bases = Vocabulary(symbols=tuple("NACGT"), pad_symbol="N", unknown_symbol="N")
    assert bases.pad == bases.unknown == 0
    assert bases.encode("AXN").tolist() == [1, 0, 0]


def test_a_vocabulary_with_faults_is_refused():
    with pytest.raises(ValueError, match="is in the vocabulary twice"):
        Vocabulary(symbols=("a", "b", "a"))
    with pytest.raises(ValueError, match="choose from character, word, number"):
        Vocabulary(symbols=("a",), unit="byte")


@given(st.lists(st.text(), min_size=1), st.booleans())
def test_a_vocabulary_survives_json_and_reads_all_its_own_texts(texts, with_cls):
    vocabulary = Vocabulary.from_characters(texts, with_cls)
    again = Vocabulary.from_document(json.loads(json.dumps(vocabulary.document())))
    assert again == vocabulary
    for text in texts:
        ids = again.encode(text)
        assert "".join(vocabulary.symbols[number] for number in ids[int(with_cls) :]) == text


@pytest.mark.parametrize(
    "vocabulary",
    [
        Vocabulary(symbols=("x", "y"), unit="word", fold_case=True),
        Vocabulary(symbols=tuple("NACGT"), pad_symbol="N", unknown_symbol="N"),
    ],
)
def test_every_setting_survives_json(vocabulary):
    assert Vocabulary.from_document(json.loads(json.dumps(vocabulary.document()))) == vocabulary
