"""Images as arrays of bytes."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.extras import needed_for

# Weights of red, green and blue.
_GRAY = np.array([0.2989, 0.587, 0.114], np.float32)


def decode_image(
    source: bytes | Path,
    mode: Literal["L", "RGB"],
    place: str | Path,
    *,
    width: int,
    height: int | None = None,
    formats: tuple[str, ...] | None = None,
) -> NDArray[np.uint8]:
    """Return the pixels of an image file: ``[height, width]`` for mode "L", ``[height, width, 3]`` for "RGB".

    Args:
        source: content of the file, or its path.
        mode: gray or color.
        place: where the image is, for messages.
        width: an image of another width is an error, found before any pixel is decoded.
        height: likewise; None for any.
        formats: which formats of Pillow are accepted; None for all.
    """
    with needed_for("reading images"):
        from PIL import Image
    try:
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=formats) as image:
            size = image.size
            if size[0] == width and height in (None, size[1]):
                return np.asarray(image.convert(mode))
    # Pillow raises many kinds of errors for damaged files.
    except Exception as error:
        raise make_image_error(error, place, " or ".join(formats) if formats else "an") from error
    rows = "any" if height is None else height
    raise DataError(f"the image has {size[0]} x {size[1]} pixels; expected {width} x {rows}", place)


def make_image_error(error: Exception, place: str | Path, kinds: str = "an") -> DataError:
    """Return the error for an image that Pillow cannot read."""
    # Of an image in memory Pillow names Python's object.
    reason = re.sub(r"\s*<[^>]*>", "", str(error)) or type(error).__name__
    return DataError(f"it cannot be read as {kinds} image ({reason})", place)


def to_gray(colors: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the gray values ``[...]`` of colors ``[..., 3]``."""
    # Term by term in float32, so that halves are rounded the same everywhere.
    red, green, blue = (colors[..., color].astype(np.float32) * _GRAY[color] for color in range(3))
    gray: NDArray[np.uint8] = np.rint(red + green + blue).astype(np.uint8)
    return gray
