"""Messages between our processes: length-prefixed data on a pipe."""

from __future__ import annotations

import os
import struct

HEADER = struct.Struct("<Q")
"""The length in bytes of what follows."""


def frame_message(data: bytes) -> bytes:
    """``data`` with its length in front."""
    return HEADER.pack(len(data)) + data


def send(descriptor: int, data: bytes) -> None:
    """Writes a message; raises ``BrokenPipeError`` if nobody reads."""
    view = memoryview(frame_message(data))
    while view:
        view = view[os.write(descriptor, view) :]


def receive(descriptor: int) -> bytes | None:
    """Reads a message; ``None`` if the pipe is closed."""
    header = read_exactly(descriptor, HEADER.size)
    return None if header is None else read_exactly(descriptor, HEADER.unpack(header)[0])


def read_exactly(descriptor: int, size: int) -> bytes | None:
    """The next ``size`` bytes; ``None`` if the pipe is closed before."""
    parts: list[bytes] = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
