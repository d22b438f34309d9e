"""Fixes as values: what to do about a finding, from the analysis that found it to reports, edits and groups.

A finding has a tuple of ``Fix``: all of them are needed. A fix is made where the finding is made and never parsed back:

* ``steps`` say what to do, each as a class of its own: ``Insert`` instructions at places, ``Change`` what stands there,
  ``Await`` a phase, ``Repeat`` a test, ``Meet``, ``BeforeIssue``, ``HandOver`` and ``Publish`` order two places by
  whatever does it best, and ``Advise`` is prose, where nothing more precise is known: most remedies of the catalogue.
* ``why`` and ``notes`` say what the execution showed; they are phrases (``mcheck.base.phrase``), which know the
  places, objects and instructions that they name. ``instead`` is another fix that does as well.

Each use has one place: ``fix_words`` makes sentences of a fix, in terms of PTX (``Finding.missing``); the report names
their places by the source and their instructions by the words of the language (``mcheck.report.finding``,
``language_words``); ``repair`` makes edits of the text (the language server, ``serve``), and ``report.source_edits``
those of a source; ``groups`` asks which findings one fix mends; ``checking.fences`` tries the fixes.

Places are statements of the program that was checked: of a compiled module those of the PTX, whose source
``Finding.lines`` knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from mcheck.base.phrase import A_BARRIER, Code, Part, Phrase, Site, Thing, say, sentences
from mcheck.base.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Point:
    """The point right ``after`` a statement, or before it."""

    site: Site
    after: bool


class Condition(StrEnum):
    """What holds of an inserted instruction: who executes it, until when or from when on, and what it stands at."""

    EACH_THREAD = "each thread"
    """Every thread that executes the statement."""
    EACH_THREAD_OF = "each thread of"
    """Every thread that executes another statement."""
    EACH_OF_CTA = "each thread of the CTA"
    EACH_OF_CLUSTER = "each thread of the cluster"
    BEFORE = "before"
    AFTER = "after"
    BEFORE_HAND_OVER = "before the hand-over"
    AFTER_HAND_OVER = "after the hand-over"
    """After what hands the statement's effect over."""
    BEFORE_ANY_HAND_OVER = "before any hand-over"
    BEFORE_RELEASE = "before the CTA releases"
    AFTER_ACQUIRE = "after the CTA acquires"
    WAITS_FOR_COPY = "waits for the copy"
    HANDS_OVER = "hands over"
    RELEASES_MAP = "releases the tensor map"
    RELAXED_WAIT = "waits relaxed"


@dataclass(frozen=True, slots=True)
class Given:
    """A condition, with the statement that it is about."""

    condition: Condition
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class WeakWait:
    """A wait for groups at ``site`` that leaves too many of them ``pending``."""

    site: Site
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """``codes``, without semicolons, at each of ``points``; without points somewhere in ``thread``. ``leaves``: of a
    wait for groups, how many may stay pending; ``weak`` is the wait whose place it may take instead. ``because``: why
    the one that is there does not do.
    """

    codes: tuple[str, ...]
    points: tuple[Point, ...] = ()
    given: tuple[Given, ...] = ()
    leaves: int | None = None
    weak: WeakWait | None = None
    thread: str = ""
    because: Phrase = ()

    @property
    def waits(self) -> bool:
        """Whether it waits for groups."""
        return self.leaves is not None

    def at(self, condition: Condition) -> Site | None:
        """The statement that a condition is about."""
        return next((given.site for given in self.given if given.condition is condition), None)


class Property(StrEnum):
    """What is changed of an instruction."""

    SCOPE = "scope"
    SEMANTICS = "semantics"
    STRENGTH = "strength"
    COUNT = "count of an init"
    BYTES = "bytes of an expect-tx"
    PARITY = "parity of a wait"
    BARRIER = "number of a barrier"
    THREADS = "count of a barrier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``what`` of the instructions at ``sites`` becomes ``new`` instead of ``old``. ``subject`` is what they are, or
    whose; ``spelled`` how they are written then; ``stages`` the number of objects that are alike. Without ``new`` it
    changes from round to round. ``before``: of a wait, the access that comes too early behind it.
    """

    what: Property
    sites: tuple[Site, ...]
    new: str
    old: str = ""
    subject: Phrase = ()
    spelled: tuple[str, ...] = ()
    stages: int = 1
    before: Site | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of an mbarrier; ``number`` is ``None`` if that is not known."""

    bar: Thing
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """A wait for ``phases`` that the operation at ``signal`` completes, ``before`` a statement or in ``thread``.

    Without phases: for that of the mbarrier which it signals or, if it signals none (``mbarrier``), for its completion.
    ``far``: a thread of another CTA has to wait, and hand over. ``or_other``: it does as well to take over from a
    thread that has waited. ``first``: the operation is the first to fill what is read; ``nobody``: no thread waits for
    its mbarrier anywhere. ``given``: what the statement is.
    """

    signal: Site
    before: Site | None = None
    phases: tuple[Phase, ...] = ()
    mbarrier: bool = True
    far: bool = False
    or_other: bool = False
    first: bool = False
    nobody: bool = False
    given: tuple[Given, ...] = ()
    thread: str = ""
    commit: bool = False
    """The operation is a tcgen05.commit, and a fence has to follow the wait."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """The ``test`` of a phase by an instruction, repeated until the phase is complete: ``early`` is what then waits."""

    code: Code
    test: Site
    early: Site


@dataclass(frozen=True, slots=True)
class Meet:
    """A release and an acquire between two accesses, or ``barrier``, if there is one for their threads. ``first`` and
    ``second``: between which statements of one thread it goes.
    """

    barrier: Code | None = A_BARRIER
    first: Site | None = None
    second: Site | None = None


@dataclass(frozen=True, slots=True)
class BeforeIssue:
    """``first`` comes before the issue of an asynchronous operation, with a proxy ``fence`` if the proxies differ."""

    first: Site
    issue: Site
    fence: bool = False


@dataclass(frozen=True, slots=True)
class HandOver:
    """A ``barrier``, or a release and an acquire, on the way to a statement, if that is known, behind the wait
    ``after`` in ``thread``. ``tensor``: of tensor memory. ``everyone``: all threads of the CTA come to that wait, so
    that the barrier may stand right behind it.
    """

    to: Site | None = None
    after: Site | None = None
    thread: str = ""
    tensor: bool = False
    barrier: Code = A_BARRIER
    everyone: bool = False


@dataclass(frozen=True, slots=True)
class Publish:
    """A barrier between the init of an mbarrier, or the fence after it, and a use of it, ``cluster``: in both CTAs; and
    the ``fence`` if it is missing, alone if the barrier is there.
    """

    init: Site
    use: Site
    cluster: bool = False
    fence: str = ""


@dataclass(frozen=True, slots=True)
class Advise:
    """Prose. ``general``: it is the remedy of the catalogue, which knows nothing of the execution. ``phases`` are those
    that it speaks of.
    """

    text: Phrase
    general: bool = False
    phases: tuple[Phase, ...] = ()


Step = Insert | Change | Await | Repeat | Meet | BeforeIssue | HandOver | Publish | Advise


@dataclass(frozen=True, slots=True)
class Instead:
    """Other steps that do as well, ``given`` that something is meant."""

    steps: tuple[Step, ...]
    given: Phrase = ()


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about the execution; ``detail``: for those who ask."""

    text: Phrase
    detail: bool = False


@dataclass(frozen=True, slots=True)
class IdleWait:
    """A wait that is there and does not do: what it ``does``."""

    at: Site
    does: Phrase


@dataclass(frozen=True, slots=True)
class Known:
    """What ``thread`` knows of ``other`` ends with an instruction, ``step`` of a numbered trace."""

    thread: str
    other: str
    at: Site
    code: str
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Helper:
    """``threads`` that would signal at ``signal``, and wait themselves at ``stuck`` for something."""

    threads: str
    signal: Site
    stuck: Site
    waits: Phrase
    several: bool = False


@dataclass(frozen=True, slots=True)
class ToCome:
    """Who has still to signal an mbarrier, or to ``write`` a word, in a deadlock."""

    bar: Thing
    helpers: tuple[Helper, ...]
    write: bool = False


Remark = Note | IdleWait | Known | ToCome


@dataclass(frozen=True, slots=True)
class Fix:
    """A fix: all of ``steps``, or ``others``, which are told with them, or ``instead``."""

    steps: tuple[Step, ...]
    others: tuple[Change, ...] = ()
    provided: Phrase = ()
    """If what is meant."""
    why: Phrase = ()
    also: Phrase = ()
    """What the steps need beside them."""
    instead: Instead | None = None
    notes: tuple[Remark, ...] = ()

    def noted(self, *more: Remark | None) -> Fix:
        """The fix with more remarks."""
        notes = (*self.notes, *(note for note in more if note is not None))
        return replace(self, notes=notes)

    @property
    def general(self) -> bool:
        """Whether a part of it is the remedy of the catalogue."""
        return any(isinstance(s, Meet) or (isinstance(s, Advise) and s.general) for s in all_steps((self,)))


Fixes = tuple[Fix, ...]


def advise(template: str, *values: Part | Phrase, phases: tuple[Phase, ...] = ()) -> Fix:
    """A fix in prose: a sentence as ``say`` makes one, without its stop."""
    return Fix((Advise(say(template, *values), phases=phases),))


def remedy(text: str) -> Fix:
    """A remedy of the catalogue: a sentence, and others that are remarks."""
    first, *others = [(one.rstrip("."),) for one in sentences(text)]
    return Fix((Advise(first, general=True),), notes=tuple(map(Note, others)))


def all_steps(fixes: Iterable[Fix]) -> Iterator[Step]:
    """The steps of fixes, alternatives included."""
    for fix in fixes:
        yield from fix.steps
        yield from fix.others
        if fix.instead is not None:
            yield from fix.instead.steps


def insertions(fixes: Iterable[Fix]) -> tuple[Insert, ...]:
    """The instructions to insert at places; they may be a part of what is to do."""
    return tuple(one for fix in fixes for step in fix.steps if (one := _insertion(step)) is not None)


def _insertion(step: Step) -> Insert | None:
    if isinstance(step, Publish) and step.fence:
        return Insert(codes=(step.fence,), points=(Point(step.init, after=True),))
    if isinstance(step, HandOver) and step.everyone and step.after is not None:
        return Insert(codes=("bar.sync 0",), points=(Point(step.after, after=True),))
    return step if isinstance(step, Insert) and step.points else None


def phases_of(fixes: Iterable[Fix]) -> Iterator[Phase]:
    """The phases that fixes speak of."""
    for step in all_steps(fixes):
        if isinstance(step, Await | Advise):
            yield from step.phases
