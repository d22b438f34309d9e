"""Reasons: why a verdict is not better, or what it rests on, as data that engines produce and programs compare.

``format_reasons`` turns them into text for people. Nothing else produces or parses that text.
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
    """The kind of a reason; its value is used in JSON."""

    TIME = "time"
    MEMORY = "memory"
    DIED = "process-died"
    """The process that ran the test died, not by a limit of ours."""
    NESTING = "nesting"
    BOUND = "bound"
    """A maximum number of executions, steps or rounds, named by ``what``, was reached."""
    UNROLLING = "unrolling"
    INTERLEAVINGS = "interleavings"
    """Executions that are not interleavings of the threads were not explored."""
    UNSUPPORTED = "unsupported"
    """An instruction or another construct is not modelled."""
    UNKNOWN_DATA = "unknown-data"
    """Control flow, an address or a size depends on data that is not given."""
    NOT_FOLLOWED = "not-followed"
    """The behaviour of a thread is unknown from some instruction on."""
    GAP = "gap"
    """Only one of several branches or orders at an instruction of a module was followed."""
    MODEL = "model"
    """The engine does not support this model."""
    RACES = "races"
    """The engine lists the final states of race-free programs only."""
    STATES = "states"
    """The engine does not list all final states of such a program."""
    CLUSTERS = "clusters"
    """Not all clusters of the launch were checked."""
    OTHER_CLUSTERS = "other-clusters"
    """The result depends on other clusters of the grid."""
    NUMBERS = "numbers"
    """A parameter is any number, and not all numbers were checked."""
    NOT_PERIODIC = "not-periodic"
    """It is not proved that large numbers of rounds repeat smaller ones."""
    FIRST_ERRORS = "first-errors"
    """The engine stopped soon after the first errors, which were not selected."""
    LEFT_OUT = "left-out"
    """Executions were left out, for a reason that is not known."""
    ONE_ENGINE = "one-engine"
    """Only one of several engines has an answer."""
    INPUT = "input"
    INTERNAL = "internal"

    # What a verdict rests on, where nothing was left out.
    SMALLEST = "smallest-number"
    """The number for which a finding was found."""
    PERIODIC = "periodic"
    """The state repeats, which proves all larger numbers."""
    UNDEFINED = "undefined"
    """Some execution is undefined, which decides a final condition."""
    ENDLESS = "endless"
    """Some execution never ends."""
    NONE_ENDS = "none-ends"
    """No execution ends, so there is no final state."""


_LIMITS = frozenset({Cause.TIME, Cause.MEMORY, Cause.DIED})
_GROUNDS = frozenset({Cause.SMALLEST, Cause.PERIODIC, Cause.UNDEFINED, Cause.ENDLESS, Cause.NONE_ENDS})
_LISTS = frozenset({Cause.NUMBERS, Cause.ONE_ENGINE, Cause.CLUSTERS})
"""Causes whose own reasons are listed after a colon."""
_BOUNDS = frozenset({Cause.BOUND, Cause.INTERLEAVINGS, Cause.GAP, Cause.FIRST_ERRORS, Cause.CLUSTERS})


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a verdict.

    ``what`` is a clause that names the construct, bound or numbers; ``amid``: what was being done when the time ran
    out; ``span``: the location; ``because``: the reasons for this one. ``own``: ``seconds`` is not the time limit of
    the user but that of one engine or instance.
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
        """Whether a limit of time or memory, or a died process, is the cause, so that another run may say more."""
        return self.cause in _LIMITS or any(r.cut for r in self.because)

    @property
    def bounds(self) -> bool:
        """Whether the search was complete up to a bound that can be named."""
        return self.cause in _BOUNDS

    @property
    def leaves_out(self) -> bool:
        """Whether it says that something was not explored."""
        return self.cause not in _GROUNDS


Reasons = tuple[Reason, ...]


def timeout_reason(seconds: float | None, amid: str = "") -> Reason:
    """The reason for a time limit that was reached, and what was being done then."""
    return Reason(Cause.TIME, seconds=seconds, amid=amid)


def reason_for_error(error: McheckError) -> Reason:
    """The reason for an answer that an exception prevented."""
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


def any_cut(reasons: Iterable[Reason]) -> bool:
    """Whether a limit of time or memory is among the reasons."""
    return any(r.cut for r in reasons)


def merge_reasons(*several: Iterable[Reason]) -> Reasons:
    """The given reasons without duplicates."""
    return tuple(dict.fromkeys(r for reasons in several for r in reasons))


def with_total_time(reasons: Reasons, seconds: float | None) -> Reasons:
    """The reasons with the user's time limit in place of the part of it that a callee was given."""
    if seconds is None:
        return reasons
    return tuple(
        replace(
            r,
            seconds=r.seconds if r.seconds is None or r.own else seconds,
            because=with_total_time(r.because, seconds),
        )
        for r in reasons
    )


def mark_own_time(reasons: Reasons) -> Reasons:
    """The reasons marked as due to a time limit that is not the user's."""
    return tuple(replace(r, own=r.seconds is not None, because=mark_own_time(r.because)) for r in reasons)


def without_spans(reasons: Iterable[Reason]) -> Reasons:
    """The reasons without their locations, to count how often each occurs."""
    return tuple(replace(r, span=None, because=without_spans(r.because)) for r in reasons)


# --- in words -------------------------------------------------------------------------------------------------


def format_reasons(reasons: Iterable[Reason]) -> str | None:
    """The reasons as text, ``None`` if there are none."""
    return "; ".join(dict.fromkeys(map(_text, reasons))) or None


def _text(reason: Reason) -> str:
    text = _clause(reason)
    why = format_reasons(reason.because)
    if why is not None:
        # What several numbers or engines say is told of each behind its name.
        text = f"{text}: {why}" if reason.cause in _LISTS else f"{text} ({why})"
    span = reason.span
    return text if span is None else f"{span.path}:{span.line}:{span.column}: {text}"


def _clause(reason: Reason) -> str:
    what = reason.what
    match reason.cause:
        case Cause.TIME if not what:
            within = "no answer in time" if reason.seconds is None else f"no answer within {reason.seconds:g} s"
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
            return "not every execution was explored"
        case Cause.ENDLESS if not what:
            return "some execution never ends"
        case Cause.UNDEFINED:
            codes = f" ({what})" if what else ""
            return f"some execution is undefined{codes}, so anything may happen"
    return what or reason.cause.value
