"""Root causes among the bugs of one program: which finding may follow from which other one.

Each rule names the codes of causes and consequences, and what connects them. A rule says "may": a consequence is never
left out, only shown behind its cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mcheck.base.phrase import Site, sites, things
from mcheck.base.records import dataclass
from mcheck.findings.finding import Access, Finding
from mcheck.findings.fix import Await, BeforeIssue, Change, HandOver, Insert, Meet, Property, Publish, all_steps
from mcheck.findings.fix_words import mentioned, things_in
from mcheck.findings.frames import count_common_calls
from mcheck.findings.one_place import lack_of
from mcheck.findings.ordering import EARLY_PHASE
from mcheck.findings.waits import OfMbarrier

Place = tuple[tuple[str, int, int], ...]
"""A source place: file, line and, where the line alone could be two instructions, the column; then those of the calls
that it was inlined into.
"""
Bug = Sequence[Finding]
_KINDS = {"race": 0, "deadlock": 1}


def source_place(access: Access) -> Place:
    """The source place of an access. Columns tell the threads of a table apart; in source code they differ between
    parts of one statement.
    """
    if access.source:
        return tuple((span.path, span.line, 0) for span in access.source)
    if access.span is not None:
        return ((access.span.path, access.span.line, access.span.column),)
    return ((f"{access.instruction} {access.object}", 0, 0),)


@dataclass(frozen=True, slots=True)
class Rule:
    """Bugs of the codes ``effects`` may follow from one of the codes ``causes`` that is ``connected`` with them."""

    causes: tuple[str, ...]
    effects: tuple[str, ...]
    connected: Callable[[Bug, Bug], bool]


def find_causes(bugs: Sequence[Bug]) -> list[int | None]:
    """For each bug the number of the one that it may follow from; that one follows from no other.

    What follows from a consequence follows from its cause, also if that is found later.
    """
    found: list[int | None] = [None] * len(bugs)
    for rule in RULES:
        for code in rule.causes:
            for k, cause in enumerate(bugs):
                if cause[0].code != code:
                    continue
                first = k if (before := found[k]) is None else before
                for j, effect in enumerate(bugs):
                    if j in (k, first) or found[j] is not None or not effect[0].code.startswith(rule.effects):
                        continue
                    if rule.connected(cause, effect):
                        found = [first if j in (at, leads) else leads for at, leads in enumerate(found)]
    return _put_errors_first(bugs, found)


def _put_errors_first(bugs: Sequence[Bug], found: Sequence[int | None]) -> list[int | None]:
    """The same with an error in front of each cause for review from which errors follow: it is what goes wrong, and the
    review shows a way there. One whose fix is a tried count comes before others, a race before a deadlock.
    """
    put = list(found)
    for k in dict.fromkeys(leads for leads in found if leads is not None):
        errors = [j for j, leads in enumerate(put) if leads == k and bugs[j][0].severity == "error"]
        if bugs[k][0].severity == "error" or not errors:
            continue
        first = min(errors, key=lambda j: (not _corrects_count(bugs[j][0]), _KINDS.get(bugs[j][0].kind, 2), j))
        put = [first if k in (at, leads) else leads for at, leads in enumerate(put)]
        put[first] = None
    return put


def _corrects_count(finding: Finding) -> bool:
    return any(isinstance(step, Change) and step.what is Property.COUNT for step in all_steps(finding.fixes))


# --- connections --------------------------------------------------------------------------------------------------

_BARRIERS = (Meet, BeforeIssue, HandOver, Publish)
"""Steps that a barrier does."""


def _always(_: Bug, __: Bug) -> bool:
    return True


def _names_barrier(cause: Bug, effect: Bug) -> bool:
    """Whether the messages and fixes name an object in common: the mbarrier that is misused, and waited for."""
    return not _names(cause[0]).isdisjoint(_names(effect[0]))


def _names(finding: Finding) -> set[str]:
    return {thing.ring for thing in (*things(finding.said), *things_in(finding.fixes))}


def _shares_place(cause: Bug, effect: Bug) -> bool:
    """Whether an access of the effect is at a place of the cause: the same copy."""
    one, other = ({source_place(a) for f in bug for a in f.accesses} for bug in (cause, effect))
    return not one.isdisjoint(other)


def _of_same_warp(cause: Bug, effect: Bug) -> bool:
    """Whether both are of one warp: each of two barriers that its lanes execute at once is the wrong one."""
    return len({a.thread.partition("[")[0] for bug in (cause, effect) for f in bug for a in f.accesses}) == 1


def _of_one_warp(cause: Bug, effect: Bug) -> bool:
    """Whether the lanes that race are of the warp whose barrier leaves lanes out."""
    return _of_same_warp(cause, effect) and "bar.warp.sync" in cause[0].accesses[0].instruction


def _is_not_waited_for(cause: Bug, _: Bug) -> bool:
    """Whether no thread waits for the copy that the cause reads, or for those who read it, or a wait for a wrong parity
    lets its thread through: all that goes round the ring runs ahead then.
    """
    steps = all_steps(cause[0].fixes)
    return any(
        step.nobody if isinstance(step, Await) else isinstance(step, Change) and step.what is Property.PARITY
        for step in steps
    )


def _runs_ahead(cause: Bug, effect: Bug) -> bool:
    """Whether a warp of the race, or one that reads in the same function, arrives in a phase that nobody has waited
    for, and no other count would be right: the wait is missing that would order its accesses.
    """
    one, other = ({a.thread.partition("[")[0] for f in bug for a in f.accesses} for bug in (cause, effect))
    alike = not one.isdisjoint(other) or _reads_in_one_call(cause, effect)
    return alike and all(fix.general for fix in effect[0].fixes)


def _reads_in_one_call(cause: Bug, effect: Bug) -> bool:
    """Whether an access of the effect is in the call of a function that reads without a wait."""
    if not any(isinstance(step, Await) for step in all_steps(cause[0].fixes)):
        return False
    reads = [access.source for f in cause for access in f.accesses if access.access == "read"]
    others = [access.source for f in effect for access in f.accesses]
    return any(0 < count_common_calls((one, other)) == len(one) - 1 for one in reads for other in others)


def _needs_cluster_barrier(cause: Bug, _: Bug) -> bool:
    return any(isinstance(step, Publish) and step.cluster for step in all_steps(cause[0].fixes))


def _same_copy_overwritten(cause: Bug, effect: Bug) -> bool:
    """Whether the effect is a write, or another copy, that meets the copy that the cause reads too early."""
    early = cause[0].accesses[-1].access == "read" or _awaits_first_fill(cause)
    if not all(a.access == "write" for a in effect[0].accesses) or not early:
        return False
    copies = {source_place(a) for f in cause for a in f.accesses if a.access == "write"}
    return not copies.isdisjoint(source_place(a) for f in effect for a in f.accesses)


def _awaits_first_fill(bug: Bug) -> bool:
    """Whether the fix is to wait for the copy that fills first what is read."""
    return any(isinstance(step, Await) and step.first for step in all_steps(bug[0].fixes))


def _same_barrier_missing(cause: Bug, effect: Bug) -> bool:
    """Whether both lack a barrier between the same reads and copies, the one before the reads, the other after them."""
    if not all(any(isinstance(s, _BARRIERS) for s in all_steps(bug[0].fixes)) for bug in (cause, effect)):
        return False
    directions = [bug[0].accesses[-1].access for bug in (cause, effect)]
    one, other = ({source_place(a) for f in bug for a in f.accesses if a.access == "read"} for bug in (cause, effect))
    return directions == ["read", "write"] and not one.isdisjoint(other)


def _same_barrier_place(cause: Bug, effect: Bug) -> bool:
    """Whether one barrier, at one place, orders the accesses of both."""
    one, other = lack_of(cause), lack_of(effect)
    return one.barrier and other.barrier and one.meets(other)


def _hands_over_with_fence(cause: Bug, effect: Bug) -> bool:
    """Whether the fence that the effect lacks is a part of the fix of the cause, at one place."""
    step = cause[0].fixes[0].steps[0] if cause[0].fixes else None
    fences = isinstance(step, BeforeIssue) and step.fence
    return fences and lack_of(cause).meets(lack_of(effect))


def _same_hand_over(cause: Bug, effect: Bug) -> bool:
    """Whether the fix of a slot that is refilled too early names a statement that the deadlock waits for."""
    one, other = _places_said(cause[0]), _places_said(effect[0])
    return [access.access for access in cause[0].accesses] == ["read", "write"] and not one.isdisjoint(other)


def _overtakes(cause: Bug, effect: Bug) -> bool:
    """Whether a warp of the deadlock still reads what a copy overwrites, and nothing of the phase that it waits for has
    come: the copies do not wait for that warp, and the phase may have passed.
    """
    readers = {a.thread.partition("[")[0] for f in cause for a in f.accesses if a.access == "read"}
    overwritten = {a.access for a in cause[0].accesses} == {"read", "write"}
    passed = (
        wait.threads
        for wait in effect[0].waits
        if isinstance(goal := wait.goal, OfMbarrier) and goal.now and goal.pending == goal.expected
    )
    return overwritten and any(name.partition("[")[0] in readers for names in passed for name in names.split(", "))


def _lacks_commit(cause: Bug, effect: Bug) -> bool:
    """Whether a copy that no wait covers, as nothing commits it, is in one group with the copies of later rounds."""
    codes = [code for step in all_steps(cause[0].fixes) if isinstance(step, Insert) for code in step.codes]
    objects = {a.object for f in cause for a in f.accesses}
    named = {a.object for f in effect for a in f.accesses} - {""}
    return any("commit_group" in code for code in codes) and named <= objects


def _slot_is_never_freed(cause: Bug, effect: Bug) -> bool:
    """Whether the deadlock waits for those who use what the copy fills, which the effect reads too early: who never
    frees a slot may not go on to the next one either.
    """
    first, second = effect[0].accesses[0], effect[0].accesses[-1]
    return (first.access, second.access) == ("write", "read") and _place_of(first) in _places_said(cause[0])


def _waits_twice(cause: Bug, effect: Bug) -> bool:
    """Whether a wait for a parity that its thread has waited for before is for the mbarrier of the effect: waits that
    it lets through too early are followed by one that nothing ends.
    """
    steps = all_steps(cause[0].fixes)
    parity = any(isinstance(step, Change) and step.what is Property.PARITY for step in steps)
    return parity and _names_barrier(cause, effect)


def _same_product(cause: Bug, effect: Bug) -> bool:
    """Whether both lack a wait for one product, which reads what is overwritten and writes registers that are used."""
    if not any(isinstance(step, Insert) and step.waits for step in all_steps(cause[0].fixes)):
        return False
    made = _places_of(effect[0], sites(effect[0].said))
    return not made.isdisjoint(_place_of(a) for f in cause for a in f.accesses)


def _place_of(access: Access) -> object:
    """The source place of an access, as those of the lines that a finding mentions are told."""
    return tuple((span.path, span.line) for span in access.source) or access.line


def _awaits_signal(cause: Bug, effect: Bug) -> bool:
    """Whether the wait that the cause lacks is for the signal of the effect: who does not wait in a loop may not wait
    behind it either, before the mbarrier goes.
    """
    named = [step.signal for f in cause for step in all_steps(f.fixes) if isinstance(step, Await)]
    return not _places_of(cause[0], named).isdisjoint(_place_of(a) for f in effect for a in f.accesses)


def _places_said(finding: Finding) -> set[object]:
    """The source places of the lines that a fix mentions."""
    return _places_of(finding, mentioned(finding.fixes))


def _places_of(finding: Finding, named: Iterable[Site]) -> set[object]:
    known = {line.line: tuple((span.path, span.line) for span in line.source) for line in finding.lines}
    return {known.get(site.line) or site.line for site in named}


_MISUSE = (
    "UB216",
    "UB217",
    "UB201",
    "UB202",
    "UB203",
    "UB204",
    "UB206",
    "UB207",
    "UB208",
    EARLY_PHASE,
    "UB205",
    "UB210",
)
"""Misuses of an mbarrier, the most certain cause first."""

RULES = (
    Rule(("RACE003",), (EARLY_PHASE, "UB205", "UB210", "UB504", "RACE003", "DEAD"), _is_not_waited_for),
    Rule(("RACE003",), ("RACE003",), _same_copy_overwritten),
    Rule(("RACE003",), (EARLY_PHASE,), _runs_ahead),
    Rule(("UB201",), ("UB503",), _needs_cluster_barrier),
    Rule(_MISUSE, ("RACE001", "RACE003", "UB205", "UB210", EARLY_PHASE), _always),
    Rule(_MISUSE, ("DEAD",), _names_barrier),
    Rule(("UB216",), ("UB216",), _names_barrier),
    Rule((EARLY_PHASE,), ("DEAD",), _always),
    Rule(("RACE003", "RACE001"), ("UB501", "UB502", "UB504"), _shares_place),
    Rule(("RACE003",), ("RACE003",), _same_barrier_missing),
    Rule(("RACE003", "RACE001"), ("RACE001", "RACE003"), _same_barrier_place),
    Rule(("RACE003",), ("RACE006",), _hands_over_with_fence),
    Rule(("RACE003",), ("UB106",), _lacks_commit),
    Rule(("RACE003",), ("DEAD",), _same_hand_over),
    Rule(("RACE003",), ("DEAD",), _waits_twice),
    Rule(("RACE003",), ("DEAD",), _overtakes),
    Rule(("RACE003",), ("UB701",), _same_product),
    Rule(("RACE003",), ("UB215",), _awaits_signal),
    Rule(("DEAD003",), ("RACE003",), _slot_is_never_freed),
    Rule(("UB304",), ("UB304",), _always),
    Rule(("UB305",), ("UB305",), _of_same_warp),
    Rule(("UB215",), ("UB504",), _shares_place),
    Rule(("UB109",), ("RACE001", "RACE003"), _of_one_warp),
)
