"""Pictures as sequences of their pixels, row by row: shades of gray as token ids, colors as three numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.formats.images import make_image_error
from paramixer.extras import needed_for

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
"""Endings of the names of pictures."""

# Opened to find out whether any picture has colors.
_LOOK_AHEAD = 50
_MODES_OF_GRAY = ("1", "L", "LA", "I", "I;16", "F")
# A larger picture is damaged, or made to fill the memory.
_MOST_PIXELS = 1 << 26


@dataclass(frozen=True)
class PictureDecoder:
    """Reads every picture the same way."""

    width: int
    """Pixels per row."""
    height: int
    """Rows."""
    color: bool
    """Whether pixels are three numbers from 0 to 1; otherwise they are whole shades of gray from 0 to 255."""
    resize: bool
    """Whether pictures of other sizes are resized; otherwise they are an error."""

    @property
    def settings(self) -> dict[str, Any]:
        """Return what :meth:`from_settings` takes."""
        return {"image_size": [self.width, self.height], "image_color": self.color, "image_resize": self.resize}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> PictureDecoder | None:
        """Return the decoder of the training data; None if it had no pictures."""
        if "image_color" not in settings:
            return None
        width, height = settings["image_size"]
        return cls(width, height, settings["image_color"], settings["image_resize"])

    def decode(self, content: bytes, place: str) -> NDArray[Any]:
        """Return the pixels of a picture: bytes ``[height * width]``, or float32 ``[height * width, 3]``."""
        with needed_for("reading images"):
            from PIL import Image
        expected = self.width, self.height
        try:
            with Image.open(io.BytesIO(content)) as file:
                size = file.size
                if size == expected or (self.resize and size[0] * size[1] <= _MOST_PIXELS):
                    # Pillow does not scale sixteen bits to eight.
                    image = _to_eight_bits(file) if file.mode.startswith("I") else file
                    image = image.convert("RGB" if self.color else "L")
                    image = image if size == expected else image.resize(expected, Image.Resampling.BILINEAR)
                    pixels = np.asarray(image)
                    return pixels.reshape(-1, 3).astype(np.float32) / 255 if self.color else pixels.reshape(-1)
        # Pillow raises many kinds of errors for damaged files, and warns of decompression bombs.
        except Exception as error:
            raise make_image_error(error, place) from error
        if self.resize:
            raise DataError(f"the image has {size[0]} x {size[1]} pixels, more than {_MOST_PIXELS}", place)
        raise DataError(
            f"the image has {size[0]} x {size[1]} pixels, where the first has {self.width} x {self.height}; resize all "
            f"with --image-size {self.width}x{self.height}",
            place,
        )


def build_decoder(
    pictures: Iterable[tuple[str, bytes]], image_size: str | int | None, most: int, length: int | None
) -> PictureDecoder:
    """Return the decoder for pictures, of which the first ones are read.

    Args:
        pictures: place and content of each.
        image_size: what all are resized to, "32" or "32x24"; None if all have one size.
        most: pixels of a picture at most, unless a length is given.
        length: N, if given.
    """
    with needed_for("reading images"):
        from PIL import Image
    size = None if image_size is None else parse_size(image_size)
    color, place = False, ""
    for number, (where, content) in enumerate(pictures):
        if number == _LOOK_AHEAD:
            break
        try:
            with Image.open(io.BytesIO(content)) as image:
                color = color or not (image.mode in _MODES_OF_GRAY or _has_gray_palette(image))
                size, place = size or image.size, place or where
        except Exception as error:
            raise make_image_error(error, where) from error
    assert size is not None
    pixels = size[0] * size[1]
    if length is None and pixels > most:
        side = int(most**0.5)
        raise DataError(
            f"images of {size[0]} x {size[1]} pixels are sequences of {pixels:,}; resize them with --image-size "
            f"{side // 2 if side > 1 else 1}, or take all pixels with --length {pixels}",
            place,
        )
    return PictureDecoder(*size, color, image_size is not None)


def parse_size(text: str | int) -> tuple[int, int]:
    """Return width and height for "32" or "32x24"."""
    match = re.fullmatch(r"(\d{1,5})(?:x(\d{1,5}))?", str(text).strip().lower())
    size = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 0 < size[0] * size[1] <= _MOST_PIXELS:
        raise DataError(f"image_size={text}; write one number of pixels, 32, or width and height, 32x24")
    return size


def _to_eight_bits(image: Any) -> Any:
    from PIL import Image

    return Image.fromarray((np.asarray(image).astype(np.int64).clip(0, 65535) >> 8).astype(np.uint8))


def _has_gray_palette(image: Any) -> bool:
    """Return whether a picture with a palette has only shades of gray."""
    if image.mode != "P":
        return False
    palette = np.array(image.getpalette("RGB") or [], np.uint8).reshape(-1, 3)
    return bool((palette == palette[:, :1]).all())
