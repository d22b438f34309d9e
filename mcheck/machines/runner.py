"""A process of one thread that runs the tests of parcels, one after the other, and answers with each result.

``python -m mcheck.machines.runner LIFE``: parcels come on standard input, results leave on standard output, each a
pickle behind its length. It ends with its orders, and with whoever holds the other end of the pipe ``LIFE``.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys

from mcheck.cat.library import give
from mcheck.machines.parcel import Parcel
from mcheck.policy.engines import preload
from mcheck.run import bounds
from mcheck.run.pool import run_cases

HEADER = struct.Struct("<Q")


def read(descriptor: int) -> bytes | None:
    """What came behind its length; ``None`` at the end of the pipe."""
    header = _exactly(descriptor, HEADER.size)
    return None if header is None else _exactly(descriptor, HEADER.unpack(header)[0])


def write(descriptor: int, data: bytes) -> None:
    """Sends ``data`` behind its length."""
    view = memoryview(HEADER.pack(len(data)) + data)
    while view:
        view = view[os.write(descriptor, view) :]


def _exactly(descriptor: int, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def main() -> None:
    """The life of a runner."""
    bounds.end_with(int(sys.argv[1]))
    answers = os.dup(1)
    os.dup2(2, 1)  # what a test prints is no answer
    for engine in ("explicit", "protocol"):  # where a limit wants a process for each parcel, it has them already
        preload(engine)
    while (order := read(0)) is not None:
        parcel: Parcel = pickle.loads(order)  # noqa: S301 - from the worker that started this process
        give(dict(parcel.models))
        for result in run_cases(parcel.cases, parcel.settings, 1, parcel.task, parcel.lost):
            write(answers, pickle.dumps(result, pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    main()
