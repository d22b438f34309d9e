"""Open questions that flags of the model are named after: pairs whose order kernels rely on, and which is not promised.

Such a pair is no finding, and nothing is proved of a program that has one: the answer is left open, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mcheck.base.reasons import Cause, Reason
from mcheck.base.records import dataclass
from mcheck.cat.algebra.tape import TapeCheck
from mcheck.cat.tags import Tag
from mcheck.events.event import Event


def is_question(name: str) -> bool:
    """Whether a flag is named after an open question."""
    return name[:1] == "Q" and name[1:].isdigit()


ABOUT = {
    "Q41": (
        (
            "access the same bytes, one by a multimem address and one by a copy's own: the CUDA programming guide "
            "synchronises so, the PTX ISA does not promise it"
        ),
        "a flag that is set by a multimem address and read by a copy's own, or the other way round",
    )
}
"""By question of the shipped models: what two accesses do that it leaves open, and what the order of others depends on
then.
"""


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """A pair of lines that a question leaves open: strong accesses that may synchronise, or (``follows``) accesses that
    would be ordered if those do.
    """

    follows: bool
    lines: tuple[int, ...]
    question: str

    @property
    def rank(self) -> tuple[bool, tuple[int, ...], str]:
        """What may synchronise is named before what follows from it."""
        return self.follows, self.lines, self.question

    def describe(self) -> str:
        """The reason, as a clause."""
        where = " and ".join(f"line {line}" for line in self.lines)
        if self.question not in ABOUT:
            return f"the model leaves open whether {where} are ordered (open question {self.question})"
        first, following = ABOUT[self.question]
        said = f"whether {where} are ordered depends on {following}" if self.follows else f"{where} {first}"
        return f"{said} (open question {self.question})"


def left_open_by(question: str, events: Sequence[Event]) -> LeftOpen:
    """What a flagged pair of accesses leaves open."""
    lines = tuple(sorted({e.op.span.line for e in events if e.op.span is not None}))
    return LeftOpen(any(Tag.WEAK in e.tags for e in events), lines, question)


def reason_of(left: Collection[LeftOpen]) -> Reason:
    """Why an answer is left open."""
    return Reason(Cause.OPEN_QUESTION, min(left, key=lambda pair: pair.rank).describe())


def flags_of_order(checks: Iterable[TapeCheck]) -> frozenset[str]:
    """The flags on uses of objects that an order decides. Races are told apart by the model."""
    return frozenset(c.name for c in checks if c.role == "flag" and not c.name.startswith("RACE"))
