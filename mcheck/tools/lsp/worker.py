"""The worker process that checks texts for the server, one after another; it can be killed at any time.

Jobs and answers are pickles with a length prefix; both sides are mcheck. The process ends when its input ends, and with
the server, however that ends.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import BinaryIO

from mcheck.base.records import dataclass
from mcheck.checking.run.case import Settings
from mcheck.checking.run.pipes import HEADER, frame_message


@dataclass(frozen=True, slots=True)
class Job:
    """A text to check as the file at ``path``; ``tries``: with edits that take further checks to confirm."""

    text: str
    path: str
    settings: Settings
    tries: bool = False


def pack_message(value: object) -> bytes:
    """A message: its length, then the pickled value."""
    return frame_message(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def main(life: int | None, memory: int | None) -> None:
    """Answer jobs from standard input on standard output until the input ends."""
    from mcheck.checking.run import worker_limits

    if life is not None:
        worker_limits.exit_with_pipe(life)
    orders, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of print must not disturb the answers
    if memory is not None and sys.platform != "win32":
        worker_limits.limit_memory(memory)
    _prepare()
    while (job := _read(orders)) is not None:
        answers.write(pack_message(_answer(job)))
        answers.flush()


def _prepare() -> None:
    """Import what every job needs, before the first one."""
    import mcheck.frontend.litmus  # noqa: F401
    from mcheck.checking.policy.engines import preload
    from mcheck.checking.run.case import DEFAULT_MODEL
    from mcheck.checking.run.single import load_model
    from mcheck.tools.lsp import notes  # noqa: F401

    preload("protocol")
    preload()
    load_model(DEFAULT_MODEL)


def _answer(job: Job) -> object:
    from mcheck.base.errors import Span
    from mcheck.tools.lsp.note import Note
    from mcheck.tools.lsp.notes import compute_notes

    try:
        return compute_notes(job.text, job.path, job.settings, tries=job.tries)
    except (MemoryError, RecursionError) as error:
        return (Note(span=Span(job.path, 1, 1), severity="information", message=type(error).__name__, code="unknown"),)


def _read(stream: BinaryIO) -> Job | None:
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    job: Job = pickle.loads(stream.read(HEADER.unpack(header)[0]))  # noqa: S301 - written by the server
    return job


if __name__ == "__main__":
    main(*(int(argument) if argument.isdigit() else None for argument in sys.argv[1:3]))
