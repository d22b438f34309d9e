"""Reasons of verdicts as data: why an answer is not better, or what it rests on.

Engines create reasons and programs compare them; ``format_reasons`` makes the text that people read, and nothing else
parses or writes such text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from mcheck.base.records import dataclass, replace


class Cause(StrEnum):
    """The kind of a reason; its value is what JSON shows."""

    TIME = "time"
    MEMORY = "memory"
    DIED = "process-died"
    """The process that ran the test died, not by a limit of mcheck."""
    NESTING = "nesting"
    BOUND = "bound"
    """A bound on executions, steps or iterations was reached; ``what`` names it."""
    UNROLLING = "unrolling"
    INTERLEAVINGS = "interleavings"
    """Executions that are not interleavings of the threads were not explored."""
    UNSUPPORTED = "unsupported"
    """An instruction or another construct is not modelled."""
    UNKNOWN_DATA = "unknown-data"
    """Control flow, an address or a size depends on unknown data."""
    NOT_FOLLOWED = "not-followed"
    """The behaviour of a thread after some location is not known."""
    OPEN_QUESTION = "open-question"
    """The ISA does not promise what kernels in use rely on; ``what`` names the question."""
    GAP = "gap"
    """At a location of a module, one of several paths or orders was explored."""
    BRANCHES = "branches"
    """Values that other threads write decide control flow, and not all of them were followed."""
    MODEL = "model"
    """The engine does not support this model."""
    RACES = "races"
    """The engine lists final states only of programs without races."""
    STATES = "states"
    """The engine does not list the final states of such a program, or not all of them."""
    CLUSTERS = "clusters"
    """Not all clusters of a launch were checked."""
    OTHER_CLUSTERS = "other-clusters"
    """The answer depends on other clusters of the grid."""
    LAUNCH = "launch"
    """One of several launches has reasons, which follow."""
    LAUNCHES = "launches"
    """How accesses of several launches are ordered is not known."""
    OTHER_LAUNCHES = "other-launches"
    """The answer depends on what other launches write."""
    NUMBERS = "numbers"
    """The program has a parameter that is any number, and not all numbers are covered."""
    NOT_PERIODIC = "not-periodic"
    """It could not be shown that large numbers repeat the behaviour of smaller ones."""
    FIRST_ERRORS = "first-errors"
    """The engine stopped soon after the first errors, which were not the question."""
    LEFT_OUT = "left-out"
    """Executions were left out, for no more specific cause."""
    ONE_ENGINE = "one-engine"
    """Only one of several engines has an answer."""
    INPUT = "input"
    INTERNAL = "internal"

    # What a verdict rests on if nothing was left out.
    SMALLEST = "smallest-number"
    """The smallest number for which there is a finding."""
    PERIODIC = "periodic"
    """The state recurs, so that all larger numbers are covered."""
    UNDEFINED = "undefined"
    """Some execution is undefined, which decides a final condition."""
    ENDLESS = "endless"
    """Some execution never ends."""
    NONE_ENDS = "none-ends"
    """No execution ends, so there is no final state."""


_LIMITS = frozenset({Cause.TIME, Cause.MEMORY, Cause.DIED})
_GROUNDS = frozenset({Cause.SMALLEST, Cause.PERIODIC, Cause.UNDEFINED, Cause.ENDLESS, Cause.NONE_ENDS})
_LISTS = frozenset({Cause.NUMBERS, Cause.ONE_ENGINE, Cause.CLUSTERS, Cause.LAUNCH, Cause.LAUNCHES})
"""Causes whose own reasons are listed after a colon."""
_BOUNDS = frozenset(
    {
        Cause.BOUND,
        Cause.BRANCHES,
        Cause.INTERLEAVINGS,
        Cause.GAP,
        Cause.FIRST_ERRORS,
        Cause.CLUSTERS,
        Cause.LAUNCHES,
    }
)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. ``what`` is a clause that names the construct, the bound or the numbers; ``during``: the work in
    which the time expired; ``span``: its location; ``source``: in a compiled module, the source location of that,
    followed by those of the calls that it was inlined into; ``because``: the reasons of this one. ``own``: the time
    limit is not the user's, but one of an engine or of a number.
    """

    cause: Cause
    what: str = ""
    seconds: float | None = None
    during: str = ""
    span: Span | None = None
    source: tuple[Span, ...] = ()
    because: tuple[Reason, ...] = ()
    own: bool = False

    @property
    def shown(self) -> Span | None:
        """The location that people read: in the source, if the module names it."""
        return kernel_place(self.source) if self.source else self.span

    @property
    def cut(self) -> bool:
        """Whether its cause is a limit of time or memory, or a process that died: another run may say more."""
        return self.cause in _LIMITS or any(r.cut for r in self.because)

    @property
    def names_bound(self) -> bool:
        """Whether it names the bound up to which the search went: nothing else was left out."""
        if self.cause is Cause.LAUNCH:
            return all(r.names_bound for r in self.because if r.is_incomplete)
        return self.cause in _BOUNDS

    @property
    def is_incomplete(self) -> bool:
        """Whether it says that something was not checked."""
        if self.cause is Cause.LAUNCH:
            return any(r.is_incomplete for r in self.because)
        return self.cause not in _GROUNDS


Reasons = tuple[Reason, ...]


def timeout_reason(seconds: float | None, amid: str = "") -> Reason:
    """The reason that the time limit expired during some work."""
    return Reason(Cause.TIME, seconds=seconds, during=amid)


def share_reason(what: str, seconds: float) -> Reason:
    """The reason that some work took more than its share of the time."""
    return Reason(Cause.TIME, f"{what} takes more than {round(seconds, 2):g} s")


def name_share(reasons: Reasons, what: str, seconds: float) -> Reasons:
    """The reasons, time limits that expired within a share of the time, which is not the user's, named as that."""
    late = share_reason(what, seconds)
    return unique_reasons(late if r.cause is Cause.TIME and not r.what else r for r in reasons)


def error_reason(error: McheckError) -> Reason:
    """The reason that an error stands for."""
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


def unique_reasons(*several: Iterable[Reason]) -> Reasons:
    """The reasons of all groups, without duplicates."""
    return tuple(dict.fromkeys(r for reasons in several for r in reasons))


def with_total_time(reasons: Reasons, seconds: float | None) -> Reasons:
    """The reasons with the user's whole time limit, where an engine was given only what was left of it."""
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


def with_progress(reasons: Reasons, came: str) -> Reasons:
    """The reasons with how far the work had come when the time was over, where the last of them does not say it."""
    late = [k for k, r in enumerate(reasons) if r.cause is Cause.TIME and not (r.what or r.during or r.because)]
    if not came or not late:
        return reasons
    last = reasons[late[-1]]
    told = replace(last, during=f"by then: {came}")
    return tuple(told if k == late[-1] else r for k, r in enumerate(reasons) if k == late[-1] or r != last)


def mark_own_limit(reasons: Reasons) -> Reasons:
    """The reasons, their time limits marked as not the user's."""
    return tuple(replace(r, own=r.seconds is not None, because=mark_own_limit(r.because)) for r in reasons)


def without_spans(reasons: Iterable[Reason]) -> Reasons:
    """The reasons without their locations, for counting equal ones."""
    return tuple(replace(r, span=None, source=(), because=without_spans(r.because)) for r in reasons)


def kernel_place(chain: Sequence[Span]) -> Span:
    """Of a source location and those of the calls that it was inlined into, the innermost in the file of the kernel:
    headers that it includes say little to a reader.
    """
    return next(span for span in chain if span.path == chain[-1].path)


# --- in words -------------------------------------------------------------------------------------------------


def format_reasons(reasons: Iterable[Reason]) -> str | None:
    """The reasons as text, ``None`` if there are none."""
    return "; ".join(dict.fromkeys(map(_text, reasons))) or None


def _text(reason: Reason) -> str:
    text = _clause(reason)
    why = format_reasons(reason.because)
    if why is not None:
        # The reasons of several numbers or engines are listed after their names.
        text = f"{text}: {why}" if reason.cause in _LISTS else f"{text} ({why})"
    span = reason.shown
    return text if span is None else f"{span.path}:{span.line}:{span.column}: {text}"


def _clause(reason: Reason) -> str:
    what = reason.what
    match reason.cause:
        case Cause.TIME if not what:
            within = "no answer in time" if reason.seconds is None else f"no answer within {reason.seconds:g} s"
            return f"{within}; {reason.during}" if reason.during else within
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
