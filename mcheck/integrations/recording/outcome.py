"""How a test ends whose kernels were not run: an assertion about numbers says nothing about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from mcheck.integrations.recording.tally import TestRecord


class NumbersNotComputed(BaseException):
    """The program asks for a number that no kernel has computed. No ``except Exception`` of a test catches it."""

    def __init__(self, what: str, of: str = "of a tensor whose numbers were not computed") -> None:
        super().__init__(f"{what} {of}: no kernel is run")


class Assumptions(Protocol):
    """What counts the assertions that are assumed to hold."""

    assumed: int


@contextmanager
def outcome(tensors: Assumptions) -> Iterator[TestRecord]:
    """The record of what happens inside. It ends at a number that was not computed, and at an assertion that fails
    after one about such numbers was assumed to hold; any other exception is an error of the program.
    """
    record, before = TestRecord(), tensors.assumed
    try:
        yield record
    except NumbersNotComputed as missing:
        record.stopped = str(missing)
    except AssertionError as failed:
        if tensors.assumed == before:
            raise
        record.stopped = f"an assertion after others that were assumed: {failed}".splitlines()[0]
    finally:
        record.assumed = tensors.assumed - before
