"""Plain data comes out of a pickle, and nothing in it is ever run."""

from __future__ import annotations

import contextlib
import os
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paramixer.data.errors import DataError
from paramixer.data.formats import pickles


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_call_is_named_and_not_run(tmp_path, protocol):
    call = pickles.read_pickle(pickle.dumps(Malicious(tmp_path / "run"), protocol), "it")
    assert isinstance(call, pickles.Call)
    assert str(call.name).endswith("mkdir")
    assert not (tmp_path / "run").exists()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    ),
    st.sampled_from([2, 3, 4, 5]),
)
def test_plain_data_comes_out_of_a_pickle_as_it_went_in(data, protocol):
    assert pickles.read_pickle(pickle.dumps(data, protocol), "it") == data


@given(st.binary(max_size=200) | st.integers(0, 300).map(lambda cut: pickle.dumps({"a": [1, (2.5, "x")] * 9})[:cut]))
def test_any_bytes_give_data_or_the_error(data):
    with contextlib.suppress(DataError):
        pickles.read_pickle(data, "it")
