"""Why a release and an acquire do not synchronise: the scope of one excludes the other's thread (8.5, 8.7)."""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.answers.step_text import text_of
from mcheck.base.phrase import Aside, Phrase, Site, join, say
from mcheck.base.records import dataclass
from mcheck.events.event import Event
from mcheck.findings.fix import Change, Fix, Instead, Meet, Property
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.program import Place
from mcheck.ir.scopes import WIDTH

RELEASES = frozenset({"release", "acq_rel", "sc"})
ACQUIRES = frozenset({"acquire", "acq_rel", "sc"})


@dataclass(frozen=True, slots=True)
class ScopedOperation:
    """A releasing or acquiring operation and the place of its thread."""

    op: Op
    place: Place


def scope_of(op: Op) -> str | None:
    """The scope of an operation that releases or acquires."""
    scope = getattr(ops.performed_operation(op), "scope", None)
    return scope if isinstance(scope, str) else None


def releases(op: Op) -> bool:
    """Whether an operation with a scope releases: a release, an arrive on an mbarrier, a releasing fence."""
    return scope_of(op) is not None and getattr(ops.performed_operation(op), "sem", "") in RELEASES


def acquires(op: Op) -> bool:
    """Whether an operation with a scope acquires."""
    return scope_of(op) is not None and getattr(ops.performed_operation(op), "sem", "") in ACQUIRES


def narrowest_common_scope(one: Place, other: Place) -> str:
    """The narrowest scope that includes both threads."""
    a, b = one.cta, other.cta
    if a == b:
        return "cta"
    if (a.gpu, a.cluster) == (b.gpu, b.cluster):
        return "cluster"
    return "gpu" if a.gpu == b.gpu else "sys"


def named_scope(needed: str, named: Iterable[Op]) -> str:
    """The scope by which operations are meant to order threads: the narrowest that they name, at least the one
    ``needed``. The threads of a finding may be in one cluster, and those of the grid rarely are; what is volatile names
    none.
    """
    given = (scope_of(op) for op in named if not getattr(ops.performed_operation(op), "volatile", False))
    meant = min((scope for scope in given if scope is not None), key=WIDTH.__getitem__, default=needed)
    return max(needed, meant, key=WIDTH.__getitem__)


@dataclass(frozen=True, slots=True)
class NarrowScope:
    """A release-acquire pair that does not synchronise because a scope is too narrow."""

    release: ScopedOperation
    acquire: ScopedOperation

    @property
    def needed_scope(self) -> str:
        """The scope that both operations need."""
        return narrowest_common_scope(self.release.place, self.acquire.place)

    @property
    def meant_scope(self) -> str:
        """The scope to give: that of the end which has one that is wide enough, if there is one."""
        wide = [op for op in (self.release.op, self.acquire.op) if op not in self.at_fault]
        return named_scope(self.needed_scope, wide)

    @property
    def at_fault(self) -> tuple[Op, ...]:
        """The operations whose scope excludes the other's thread."""
        ends = (self.release.op, self.acquire.op)
        return tuple(op for op in ends if WIDTH[scope_of(op) or "sys"] < WIDTH[self.needed_scope])


def find_too_narrow(pairs: Iterable[tuple[ScopedOperation, ScopedOperation]]) -> list[NarrowScope]:
    """The (release, acquire) pairs whose scopes exclude each other's threads, as far as each names another scope."""
    found: list[NarrowScope] = []
    named: set[object] = set()
    for release, acquire in pairs:
        narrow = NarrowScope(release, acquire)
        faults = {(_named(op), narrow.needed_scope) for op in narrow.at_fault}
        if not faults <= named:
            named |= faults
            found.append(narrow)
    return found


def explain_narrow_scope(narrow: NarrowScope) -> Phrase:
    """A clause that names the scope that is too narrow, for the message of a finding."""
    by_scope: dict[str, list[Phrase]] = {}
    for op in narrow.at_fault:
        by_scope.setdefault(scope_of(op) or "", []).append(_named(op))
    parts = [
        say("{} {} scope .{}", join(named), "has" if len(named) == 1 else "have", scope)
        for scope, named in by_scope.items()
    ]
    far = {"cluster": "in another CTA of the cluster", "gpu": "in another cluster", "sys": "on another GPU"}
    return say("{}, but the other thread is {}", join(parts), far[narrow.needed_scope])


def suggest_scope(narrow: NarrowScope) -> Fix:
    """Which scope to use, and where."""
    spelled = tuple(_spelled(op, narrow.meant_scope) for op in narrow.at_fault)
    return Fix((_wider(narrow, spelled),))


def _wider(narrow: NarrowScope, spelled: tuple[str, ...] = ()) -> Change:
    sites = tuple(Site(op.span.line, op.span.column) for op in narrow.at_fault if op.span is not None)
    return Change(what=Property.SCOPE, sites=sites, new=narrow.meant_scope, spelled=spelled)


def _spelled(op: Op, scope: str) -> str:
    """The spelling of an operation with another scope; ``membar`` has own names for scopes, none for clusters."""
    if text_of(op).startswith("membar"):
        return "membar.sys" if scope == "sys" else "membar.gl"
    return f".{getattr(ops.performed_operation(op), 'sem', 'relaxed')}.{scope}"


def suggest_wider_scope(one: tuple[Event, Place], other: tuple[Event, Place]) -> Fix | None:
    """The scope that would make two accesses morally strong (8.7), so that they do not race.

    ``None`` if an access is weak, the bytes differ, or no scope is too narrow.
    """
    (a, _), (b, _) = one, other
    if (a.virtual, a.address, a.size) != (b.virtual, b.address, b.size):
        return None
    change = _wider(NarrowScope(*(ScopedOperation(event.op, place) for event, place in (one, other))))
    if scope_of(a.op) is None or scope_of(b.op) is None or not change.sites:
        return None
    why = ("strong accesses that include each other's threads do not race",)
    return Fix((change,), why=why, instead=Instead((Meet(),)))


def _named(op: Op) -> Phrase:
    """An instruction by its line, what it is for those who ask."""
    text = f"'{text_of(op)}'"
    return (text,) if op.span is None else (Aside(f"{text} at "), Site(op.span.line, op.span.column))
