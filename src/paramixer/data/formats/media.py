"""Images and sounds: which files they are, and what decodes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.data.formats import audio, picture_sequences
from paramixer.data.formats.audio import AudioDecoder
from paramixer.data.formats.picture_sequences import PictureDecoder
from paramixer.data.formats.tabular.tables import Tables
from paramixer.data.vocabulary import BYTES, Vocabulary

IMAGES, SOUNDS = "images", "sounds"
SUFFIXES = {IMAGES: picture_sequences.SUFFIXES, SOUNDS: audio.SUFFIXES}
"""Endings of the names of the files of each kind."""

# A larger file is not read whole.
_LARGEST = 2 << 30


@dataclass(frozen=True)
class Decoder:
    """Reads every file of a kind the same way."""

    files: PictureDecoder | AudioDecoder
    """Decodes the content of one file."""
    inferred: dict[str, Any]
    """What was found; see :attr:`paramixer.data.TaskInfo.inferred`."""

    @property
    def kind(self) -> str:
        """Which kind of files it is for."""
        return IMAGES if isinstance(self.files, PictureDecoder) else SOUNDS

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Endings of the names of the files."""
        return SUFFIXES[self.kind]

    @property
    def vocabulary(self) -> Vocabulary | None:
        """Of shades of gray; None for numbers."""
        return BYTES if isinstance(self.files, PictureDecoder) and not self.files.color else None

    @property
    def preset(self) -> str:
        """The paper's nearest preset."""
        return "adding" if self.vocabulary is None else "image"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what :func:`restore_decoder` takes."""
        return self.files.settings

    def decode(self, content: bytes, place: str) -> NDArray[Any]:
        """Return the sequence of one file."""
        return self.files.decode(content, place)


def restore_decoder(settings: dict[str, Any]) -> Decoder | None:
    """Return the decoder of the training data; None if it had neither images nor sounds."""
    files = PictureDecoder.from_settings(settings) or AudioDecoder.from_settings(settings)
    return None if files is None else Decoder(files, {})


def build_decoder(
    kind: str,
    files: Callable[[], Iterable[tuple[str, bytes]]],
    image_size: str | int | None,
    rate: int | None,
    most: int,
    length: int | None,
) -> Decoder:
    """Return the decoder for files of a kind, of which the first ones are read.

    Args:
        kind: of the files.
        files: returns place and content of each.
        image_size: what images are resized to.
        rate: samples per second that sounds are resampled to.
        most: the length of a sequence at most, unless one is given.
        length: N, if given.
    """
    if kind == IMAGES:
        if rate is not None:
            raise DataError("--rate is for sounds; these are images")
        pictures = picture_sequences.build_decoder(files(), image_size, most, length)
        size = f"{pictures.width} x {pictures.height} pixels"
        return Decoder(pictures, {"alphabet": "colors" if pictures.color else "gray", "image": size})
    if image_size is not None:
        raise DataError("--image-size is for images; these are sounds")
    sounds, own_rate = audio.build_decoder(files(), rate, most, length)
    what = f"{sounds.rate} samples per second"
    if sounds.rate != own_rate:
        what += f", resampled from {own_rate}"
    return Decoder(sounds, {"alphabet": "numbers", "sound": what})


def find_kind(values: Sequence[object]) -> str | None:
    """Return which kind of file the values of a column name; None if they are anything else."""
    names = [value.lower() for value in values if isinstance(value, str)]
    if not names or len(names) < len(values):
        return None
    return next((kind for kind, endings in SUFFIXES.items() if all(name.endswith(endings) for name in names)), None)


def read_column(table: Tables, column: str, folders: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield place and content of the files that a column names."""
    for place, (value,) in table.read([column]):
        yield place, _read_file(value, folders, place)


def read_listed(decoder: Decoder, folders: Sequence[Path], value: object, place: str) -> NDArray[Any]:
    """Return the sequence of the file that a cell names."""
    return decoder.decode(_read_file(value, folders, place), place)


def read_file(path: Path, place: str) -> bytes:
    """Return the content of a file of at most 2 GB."""
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(f"{path.name!r} has more than {_LARGEST >> 30} GB", place)
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path.name!r} cannot be read: {error.strerror}", place) from error


def _read_file(value: object, folders: Sequence[Path], place: str) -> bytes:
    """Return the content of a file, whose path is relative to one of the folders."""
    path = next((folder / str(value) for folder in folders if (folder / str(value)).is_file()), None)
    if path is None:
        raise DataError(f"there is no file {str(value)!r}; paths are relative to the folder of the table", place)
    return read_file(path, place)
