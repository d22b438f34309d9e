"""Findings of a search that goes on: who asked can keep them in case the search is stopped.

A search is named by the program that the question is about, so that findings of edited copies of it are not heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mcheck.findings.finding import Finding

Heard = Callable[[Sequence[Finding], int], None]
"""Takes the findings so far and the number of executions."""
_LISTENERS: list[tuple[object, Heard]] = []


@contextmanager
def listen(program: object, heard: Heard) -> Iterator[None]:
    """Hear of errors about ``program`` in this context."""
    _LISTENERS.append((program, heard))
    try:
        yield
    finally:
        _LISTENERS.pop()


def tell(program: object, findings: Sequence[Finding], executions: int) -> None:
    """Say what has been found about ``program``, if anybody listens."""
    if _LISTENERS and _LISTENERS[-1][0] is program:
        _LISTENERS[-1][1](findings, executions)
