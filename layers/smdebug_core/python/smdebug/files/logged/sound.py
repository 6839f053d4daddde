"""Sound as WAV files: PCM of 16 bits."""

from __future__ import annotations

import io
import wave

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import DamagedFile

Samples = NDArray[np.int16]


def encode_wav(samples: Samples, rate: int) -> bytes:
    """Return samples of shape (samples, channels) as a file."""
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return written.getvalue()


def decode_wav(data: bytes, place: str) -> tuple[Samples, int]:
    """Return the samples and their rate; `DamagedFile` if the file cannot be read."""
    try:
        with wave.open(io.BytesIO(data)) as file:
            if file.getsampwidth() != 2:
                raise ValueError("its samples do not have 16 bits")
            frames = file.readframes(file.getnframes())
            samples = np.frombuffer(frames, "<i2").reshape(-1, file.getnchannels())
            return samples.astype(np.int16), file.getframerate()
    except (wave.Error, EOFError, ValueError) as error:
        raise DamagedFile(place, f"it is no sound that can be read: {error}") from error
