"""Images are decoded after their size was checked, and damage is an error that names its place."""

from __future__ import annotations

import io
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from paramixer.data.errors import DataError
from paramixer.data.formats.images import decode_image, to_gray

PIXELS = np.arange(4 * 6, dtype=np.uint8).reshape(4, 6)


def encode(kind: str) -> bytes:
    data = io.BytesIO()
    Image.fromarray(PIXELS).save(data, kind)
    return data.getvalue()


def test_gray_weighs_red_green_and_blue():
    assert to_gray(np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]], np.uint8)).tolist() == [
        [76, 150, 29, 255]
    ]


def test_pixels_come_back_from_bytes_and_from_a_file(tmp_path):
    assert np.array_equal(decode_image(encode("PNG"), "L", "it", width=6, height=4), PIXELS)
    (tmp_path / "a.png").write_bytes(encode("PNG"))
    colors = decode_image(tmp_path / "a.png", "RGB", "it", width=6)
    assert np.array_equal(colors, np.repeat(PIXELS[..., None], 3, -1))


def test_another_size_or_format_is_refused():
    with pytest.raises(DataError, match="^it: the image has 6 x 4 pixels; expected 7 x any"):
        decode_image(encode("PNG"), "L", "it", width=7)
    with pytest.raises(DataError, match="^it: the image has 6 x 4 pixels; expected 6 x 6"):
        decode_image(encode("PNG"), "L", "it", width=6, height=6)
    with pytest.raises(DataError, match="^it: it cannot be read as PNG image"):
        decode_image(encode("BMP"), "L", "it", width=6, formats=("PNG",))


@given(place=st.integers(0, 1000), value=st.integers(0, 255), cut=st.integers(0, 40))
def test_any_damage_gives_pixels_or_a_data_error(place, value, cut):
    damaged = bytearray(encode("PNG"))
    damaged[place % len(damaged)] = value
    with suppress(DataError):
        assert decode_image(bytes(damaged[: len(damaged) - cut]), "L", "it", width=6, height=4).shape == (4, 6)
