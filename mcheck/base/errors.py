"""Exception classes, and the source location (``Span``) that they point at.

``InputError`` is a mistake of the user, ``Unsupported`` a construct that mcheck does not model, ``InternalError`` a
bug of mcheck. ``mcheck.report.errors`` renders them (line, caret, hint).
"""

from __future__ import annotations

from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A source location: 1-based line and column, ``length`` characters wide (at least 1)."""

    path: str
    line: int
    column: int
    length: int = 1


class McheckError(Exception):
    """Base class of errors that mcheck reports without a traceback."""

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        code: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
        section: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.code = code
        self.expected = expected
        self.hint = hint
        self.section = section
        self.others: tuple[McheckError, ...] = ()
        """Further errors in the same text, without those that follow from this one."""

    @property
    def all_errors(self) -> tuple[McheckError, ...]:
        """This error and the others, in the order of the text."""
        return (self, *self.others)


class InputError(McheckError):
    """A file, a model, a path or an option is wrong; exit status 2."""


class Unsupported(McheckError):
    """A legal construct that mcheck does not model; the answer is ``unknown``, exit status 3."""


class UnknownData(Unsupported):
    """The program's behaviour depends on data that is not known; the answer is ``unknown``."""


class Exceeded(Unsupported):
    """A requested limit of time or memory was reached; the answer is ``unknown``."""


class OutOfMemory(Exceeded):
    """The memory limit, or all memory, is used up; the answer is ``unknown``."""


class InternalError(McheckError):
    """A broken invariant: a bug of mcheck, please report it."""
