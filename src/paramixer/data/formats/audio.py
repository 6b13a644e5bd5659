"""Sound files as signals: one number per sample and channel."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paramixer.data.errors import DataError
from paramixer.extras import needed_for

SUFFIXES = (".wav", ".flac", ".ogg", ".aif", ".aiff", ".au", ".mp3")
"""Endings of the names of sound files."""

# So many files are measured to choose a rate, and lower ones than this are not chosen: speech needs as much.
_LOOK_AHEAD, _LEAST_RATE = 500, 4000
# A longer file is damaged, or made to fill the memory.
_MOST_SAMPLES = 1 << 28


@dataclass(frozen=True)
class AudioDecoder:
    """Reads every sound file the same way."""

    rate: int
    """Samples per second that signals have."""
    source_rate: int | None
    """Samples per second that files must have; None for any."""
    channels: int
    """Channels that files must have."""

    @property
    def settings(self) -> dict[str, Any]:
        """Return what :meth:`from_settings` takes."""
        return {"rate": self.rate, "audio_channels": self.channels}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> AudioDecoder | None:
        """Return the decoder of the training data; None if it had no sound. Files of any rate are resampled to its."""
        if "audio_channels" not in settings:
            return None
        return cls(settings["rate"], None, settings["audio_channels"])

    def decode(self, content: bytes, place: str) -> NDArray[np.float32]:
        """Return the samples ``[length, channels]`` of a file."""
        with needed_for("reading audio"):
            import soundfile
        try:
            with soundfile.SoundFile(io.BytesIO(content)) as file:
                rate, channels, count = file.samplerate, file.channels, file.frames
                if count * channels > _MOST_SAMPLES:
                    raise DataError(f"{count} samples, more than {_MOST_SAMPLES}; cut it into pieces", place)
                samples = file.read(dtype="float32", always_2d=True)
        except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError, MemoryError) as error:
            raise error if isinstance(error, DataError) else _make_read_error(error, place) from error
        if channels != self.channels:
            raise DataError(f"{channels} channels, where others have {self.channels}; convert all to mono", place)
        if self.source_rate is not None and rate != self.source_rate:
            raise DataError(
                f"{rate} samples per second, where others have {self.source_rate}; resample all with --rate "
                f"{min(rate, self.source_rate)}",
                place,
            )
        return _resample(samples, rate, self.rate, place)


def build_decoder(
    files: Iterable[tuple[str, bytes]], rate: int | None, most: int, length: int | None
) -> tuple[AudioDecoder, int]:
    """Return the decoder for sound files, of which the first ones are measured, and their own rate.

    Args:
        files: place and content of each.
        rate: samples per second that all are resampled to. None for their own, or, if most would be longer than
            ``most``, for a whole fraction of it.
        most: samples of a signal at most, unless a length is given.
        length: N, if given.
    """
    with needed_for("reading audio"):
        import soundfile
    counts: list[int] = []
    own_rate = channels = 0
    for place, content in islice(files, _LOOK_AHEAD):
        try:
            with soundfile.SoundFile(io.BytesIO(content)) as file:
                own_rate, channels = own_rate or file.samplerate, channels or file.channels
                counts.append(file.frames)
        except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
            raise _make_read_error(error, place) from error
    if rate is not None:
        return AudioDecoder(rate, None, channels), own_rate
    usual, step = float(np.quantile(counts, 0.99)), 1
    if length is None:
        while usual / step > most and own_rate // (step + 1) >= _LEAST_RATE:
            step += 1
    return AudioDecoder(round(own_rate / step), own_rate, channels), own_rate


def _resample(samples: NDArray[np.float32], rate: int, wanted: int, place: str) -> NDArray[np.float32]:
    if rate == wanted or not len(samples):
        return samples
    if wanted > rate:
        raise DataError(f"{rate} samples per second, fewer than the {wanted} of --rate; lower it", place)
    with needed_for("resampling audio"):
        from scipy.signal import resample_poly
    common = math.gcd(rate, wanted)
    return np.asarray(resample_poly(samples, wanted // common, rate // common, axis=0), np.float32)


def _make_read_error(error: Exception, place: str) -> DataError:
    reason = str(error).partition(": ")[2] or str(error) or type(error).__name__
    return DataError(f"it cannot be read as audio ({reason})", place)
