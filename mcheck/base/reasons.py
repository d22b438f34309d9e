"""Why a verdict is no better, or what it rests on: reasons as data, which engines give and programs compare.

``in_words`` makes the sentences of them that people read. Nothing else reads or writes those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from mcheck.base.errors import (
    Exceeded,
    InputError,
    InternalError,
    McheckError,
    OutOfMemory,
    Span,
    UnknownData,
    Unsupported,
)
from mcheck.base.records import dataclass


class Cause(StrEnum):
    """What kind of reason one is; in JSON it is its text."""

    TIME = "time"
    MEMORY = "memory"
    DIED = "process-died"
    """A process that had the test ended, by no limit of ours."""
    NESTING = "nesting"
    BOUND = "bound"
    """A number of executions, steps or rounds was met, which ``what`` gives."""
    UNROLLING = "unrolling"
    INTERLEAVINGS = "interleavings"
    """Executions that are no interleaving of the threads were not followed."""
    UNSUPPORTED = "unsupported"
    """An instruction or another construct that is not modelled."""
    UNKNOWN_DATA = "unknown-data"
    """Control, an address or a size depends on what nobody has said."""
    NOT_FOLLOWED = "not-followed"
    """What a thread does from some place on is not known."""
    GAP = "gap"
    """At a place of a module, one way or order of several was followed."""
    MODEL = "model"
    """The engine has no answer under this model."""
    RACES = "races"
    """The engine lists the states of programs without races only."""
    STATES = "states"
    """The engine does not list the states of such a program, or not all of them."""
    CLUSTERS = "clusters"
    """Not all clusters of a launch were looked at."""
    OTHER_CLUSTERS = "other-clusters"
    """Other clusters of the grid decide."""
    NUMBERS = "numbers"
    """Something is any number, and not all numbers are known."""
    NOT_PERIODIC = "not-periodic"
    """That large numbers repeat what smaller ones do could not be shown."""
    FIRST_ERRORS = "first-errors"
    """The engine stops soon after the first errors, which are not asked for."""
    LEFT_OUT = "left-out"
    """Executions were left out, and no more is known of them."""
    ONE_ENGINE = "one-engine"
    """Of several engines only one has an answer."""
    INPUT = "input"
    INTERNAL = "internal"

    # What a verdict rests on, where nothing was left out.
    SMALLEST = "smallest-number"
    """The number that a finding was met with."""
    PERIODIC = "periodic"
    """The state repeats, so that all larger numbers are known."""
    UNDEFINED = "undefined"
    """Some execution is undefined, which decides a final condition."""
    ENDLESS = "endless"
    """Some execution never ends."""
    NONE_ENDS = "none-ends"
    """No execution ends, so that there is no final state."""


_LIMITS = frozenset({Cause.TIME, Cause.MEMORY, Cause.DIED})
_GROUNDS = frozenset({Cause.SMALLEST, Cause.PERIODIC, Cause.UNDEFINED, Cause.ENDLESS, Cause.NONE_ENDS})
_LISTS = frozenset({Cause.NUMBERS, Cause.ONE_ENGINE, Cause.CLUSTERS})
"""Whose own reasons are listed behind a colon."""
_BOUNDS = frozenset({Cause.BOUND, Cause.INTERLEAVINGS, Cause.GAP, Cause.FIRST_ERRORS, Cause.CLUSTERS})


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. ``what`` is a clause that names the thing: the construct, the bound, the numbers; ``amid``: in the
    middle of what the time was over; ``span``: where it is; ``because``: the reasons of this one. ``own``: the time is
    not that which the asker gave, but one that an engine or a number has at most.
    """

    cause: Cause
    what: str = ""
    seconds: float | None = None
    amid: str = ""
    span: Span | None = None
    because: tuple[Reason, ...] = ()
    own: bool = False

    @property
    def cut(self) -> bool:
        """Whether a limit of time or memory, or the end of a process, is behind it: another run may say more."""
        return self.cause in _LIMITS or any(r.cut for r in self.because)

    @property
    def bounds(self) -> bool:
        """Whether the search went up to a bound that can be named: nothing else was left out."""
        return self.cause in _BOUNDS

    @property
    def leaves_out(self) -> bool:
        """Whether it says that something was not looked at."""
        return self.cause not in _GROUNDS


Reasons = tuple[Reason, ...]


def no_time(seconds: float | None, amid: str = "") -> Reason:
    """The time given was over, in the middle of what."""
    return Reason(Cause.TIME, seconds=seconds, amid=amid)


def of_error(error: McheckError) -> Reason:
    """Why there is no answer where this was raised."""
    cause = next((cause for kind, cause in _CAUSES if isinstance(error, kind)), Cause.INTERNAL)
    return Reason(cause, error.message, span=error.span)


_CAUSES: tuple[tuple[type[McheckError], Cause], ...] = (
    (OutOfMemory, Cause.MEMORY),
    (Exceeded, Cause.TIME),
    (UnknownData, Cause.UNKNOWN_DATA),
    (Unsupported, Cause.UNSUPPORTED),
    (InputError, Cause.INPUT),
    (InternalError, Cause.INTERNAL),
)


def cut(reasons: Iterable[Reason]) -> bool:
    """Whether a limit of time or memory is among the reasons."""
    return any(r.cut for r in reasons)


def once(*several: Iterable[Reason]) -> Reasons:
    """All these reasons, each once."""
    return tuple(dict.fromkeys(r for reasons in several for r in reasons))


def of_all_the_time(reasons: Reasons, seconds: float | None) -> Reasons:
    """The reasons with the time that a person gave, where the one who gave them had only what was left of that."""
    if seconds is None:
        return reasons
    return tuple(
        replace(
            r,
            seconds=r.seconds if r.seconds is None or r.own else seconds,
            because=of_all_the_time(r.because, seconds),
        )
        for r in reasons
    )


def of_own_time(reasons: Reasons) -> Reasons:
    """The reasons where the time was not that which the asker gave."""
    return tuple(replace(r, own=r.seconds is not None, because=of_own_time(r.because)) for r in reasons)


def unplaced(reasons: Iterable[Reason]) -> Reasons:
    """The reasons without where they are, for those who count how often one is met."""
    return tuple(replace(r, span=None, because=unplaced(r.because)) for r in reasons)


# --- in words -------------------------------------------------------------------------------------------------


def in_words(reasons: Iterable[Reason]) -> str | None:
    """The reasons as a person reads them, ``None`` if there are none."""
    return "; ".join(dict.fromkeys(map(_text, reasons))) or None


def _text(reason: Reason) -> str:
    text = _clause(reason)
    why = in_words(reason.because)
    if why is not None:
        # What several numbers or engines say is told of each behind its name.
        text = f"{text}: {why}" if reason.cause in _LISTS else f"{text} ({why})"
    span = reason.span
    return text if span is None else f"{span.path}:{span.line}:{span.column}: {text}"


def _clause(reason: Reason) -> str:
    what = reason.what
    match reason.cause:
        case Cause.TIME if not what:
            within = (
                "no answer in the time given" if reason.seconds is None else f"no answer within {reason.seconds:g} s"
            )
            return f"{within}; {reason.amid}" if reason.amid else within
        case Cause.MEMORY if not what:
            return "out of memory"
        case Cause.NESTING if not what:
            return "the program is too deeply nested for this engine"
        case Cause.BOUND:
            return f"explored up to {what}"
        case Cause.INTERLEAVINGS:
            return f"explored up to interleavings: {what}"
        case Cause.UNROLLING if not what:
            return "a loop whose state does not repeat was cut at the unrolling bound"
        case Cause.LEFT_OUT | Cause.FIRST_ERRORS if not what:
            return "not every execution was looked at"
        case Cause.ENDLESS if not what:
            return "some execution never ends"
        case Cause.UNDEFINED:
            codes = f" ({what})" if what else ""
            return f"some execution is undefined{codes}, so anything may happen"
    return what or reason.cause.value
