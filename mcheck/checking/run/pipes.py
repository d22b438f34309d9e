"""Messages between processes of our own: data behind its length, on a pipe."""

from __future__ import annotations

import os
import struct

HEADER = struct.Struct("<Q")
"""The length in bytes of what follows."""


def frame_message(data: bytes) -> bytes:
    """``data`` behind its length."""
    return HEADER.pack(len(data)) + data


def send(descriptor: int, data: bytes) -> None:
    """Writes ``data`` behind its length; raises ``BrokenPipeError`` if nobody reads."""
    view = memoryview(frame_message(data))
    while view:
        view = view[os.write(descriptor, view) :]


def receive(descriptor: int) -> bytes | None:
    """What came behind its length; ``None`` if the pipe ended before."""
    header = read_exactly(descriptor, HEADER.size)
    return None if header is None else read_exactly(descriptor, HEADER.unpack(header)[0])


def read_exactly(descriptor: int, size: int) -> bytes | None:
    """The next ``size`` bytes; ``None`` if the pipe ended before."""
    parts: list[bytes] = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
