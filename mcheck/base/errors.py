"""The ways to fail, and the place in a text that they point at.

``InputError`` is the user's fault, ``Unsupported`` is a construct that the project does not model,
``InternalError`` is ours. Rendering (line, caret, hint) lives in ``mcheck.report.errors``.
"""

from __future__ import annotations

from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text: 1-based line and column, ``length`` characters wide (at least 1)."""

    path: str
    line: int
    column: int
    length: int = 1


class McheckError(Exception):
    """Anything that mcheck reports without a traceback."""

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
        """What else is wrong with the same text, without what follows from it."""

    @property
    def all(self) -> tuple[McheckError, ...]:
        """This and the others, in the order of the text."""
        return (self, *self.others)


class InputError(McheckError):
    """A text, a model, a path or an option is wrong; exit status 2."""


class Unsupported(McheckError):
    """A legal construct that is not modelled here; the answer is ``unknown``, exit status 3."""


class UnknownData(Unsupported):
    """What a program does depends on contents that nobody knows; likewise."""


class Exceeded(Unsupported):
    """A limit of time or memory that was asked for has been reached; likewise."""


class OutOfMemory(Exceeded):
    """The memory that was asked for, or all that there is, is used up; likewise."""


class InternalError(McheckError):
    """A broken promise of mcheck's own; please report it."""
