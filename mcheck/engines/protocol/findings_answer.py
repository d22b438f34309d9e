"""The protocol engine's answer about findings: what was found, and which executions were left out."""

from __future__ import annotations

from contextlib import suppress
from itertools import permutations

from mcheck.answers.merged_answers import Excused
from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import INTERLEAVING_ASSUMPTION, add_verdict, assumptions, makes_undefined
from mcheck.base.budget import LEAST, TimeOut, read_clock
from mcheck.base.reasons import Cause, Reason, Reasons
from mcheck.base.verdicts import Verdict
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.cat.ast import Model
from mcheck.engines.protocol import determined_waits
from mcheck.engines.protocol.analysis.delayed_waits import explain_delayed_waits
from mcheck.engines.protocol.analysis.model_equivalence import is_equivalent
from mcheck.engines.protocol.analysis.non_interleaving import find_non_interleaving
from mcheck.engines.protocol.analysis.weakened_accesses import weaken_accesses
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.exploration import MAX_EXECUTIONS, Search
from mcheck.engines.protocol.passes import ALL_PASSES, Passes
from mcheck.engines.protocol.stale_tensormaps import has_one_map_write
from mcheck.ir import ops
from mcheck.ir.program import Program

WEAKER_SHARE = 3
"""The part of the time limit for a program with fewer strong accesses. With large kernels it needs a small part of what
the other one needs; where it fails, its time is lost.
"""


def answer(
    program: Program,
    model: Model,
    *,
    profile: str = "ptx",
    unroll: int = 2,
    timeout: float | None = None,
    limit: int = MAX_EXECUTIONS,
    thorough: bool = False,
    brief: bool = False,
    excused: Excused = None,
    passes: Passes = ALL_PASSES,
) -> Answer:
    """Find the findings of a program, whatever its condition; never raises for a time-out or an unmodelled construct.

    After the first error a little more is explored; with ``thorough`` everything, with ``brief`` nothing. ``excused``
    errors do not count as the first one.
    """
    weaker = weaken_accesses(program, passes) if is_equivalent(tape_of(model)) else None
    before = read_clock()
    if weaker is not None:
        share = None if timeout is None else timeout / WEAKER_SHARE
        search = Search(weaker, model, profile, unroll, limit, brief=True, suggests_fixes=False, passes=passes)
        search.on_execution = _stop_if_anything_is_open
        found = _explore(search, share)
        if found.verdict is Verdict.PASS and not found.findings and set(found.reasons) <= {OTHER_BRANCHES}:
            return found
    left = None if timeout is None else max(timeout - (read_clock() - before), LEAST)
    return _explore(Search(program, model, profile, unroll, limit, thorough, brief, excused, passes), left)


def _stop_if_anything_is_open(machine: Machine) -> None:
    """Stop where the program with fewer strong accesses cannot answer for the other one."""
    if machine.problems or machine.bound or machine.not_followed or machine.reordering or machine.left_open:
        raise TimeOut


def _explore(search: Search, timeout: float | None) -> Answer:
    """The answer of a search."""
    program = search.program
    cut = search.explore(timeout)
    unknown = cut or search.not_followed_reason or (None if search.has_consistent_execution else NO_EXECUTION)
    bound = search.bound_reason
    if cut is None and search.setup is not None and bound is None and not search.answered_by_error:
        more = (
            search.reordering
            or _explain_other_orders(search, search.setup)
            or explain_delayed_waits(program, search.setup.sliced_registers)
            or _explain_lost_updates(search)
        )
        bound = Reason(Cause.INTERLEAVINGS, more) if more is not None else _explain_stale_maps(search)
    found = search.sorted_findings()
    return Answer(
        verdict=Verdict.PASS if unknown is None else Verdict.UNKNOWN,
        complete=False,
        undefined=any(map(makes_undefined, found)),
        findings=found,
        covered=unknown is None and bound is None and not search.branches and not search.answered_by_error,
        assumptions=(*assumptions(program), *(() if search.stands_for_all else (INTERLEAVING_ASSUMPTION,))),
        executions=search.executions,
        engine="protocol",
        reasons=tuple(r for r in (unknown or bound or (OTHER_BRANCHES if search.branches else None),) if r is not None),
        branches=frozenset(search.branches),
        ends=not search.no_execution_ends,
        cut=search.fixes_cut,
        all_executions=search.stands_for_all,
    )


def _explain_other_orders(search: Search, setup: Setup) -> str | None:
    """Why there may be executions that no order of the steps shows; ``None`` also where one stands for them as well."""
    if search.stands_for_all:
        return None
    found = find_non_interleaving(
        search.program, setup.sliced_registers, setup.partition, setup.tape, search.ordered_words
    )
    if found is None or not setup.tracked_words or search.findings:
        return found
    with suppress(TimeOut):
        search.stands_for_all, _ = determined_waits.find_least_execution(setup)
        search.executions += 1
    return None if search.stands_for_all else found


OTHER_BRANCHES = Reason(Cause.BRANCHES, "one of several branches that depend on the order of threads")
NO_EXECUTION = Reason(Cause.MODEL, "the protocol engine finds no execution that the model allows")


def check(
    program: Program,
    model: Model,
    *,
    profile: str = "ptx",
    unroll: int = 2,
    timeout: float | None = None,
    limit: int = MAX_EXECUTIONS,
    thorough: bool = False,
    passes: Passes = ALL_PASSES,
) -> Answer:
    """``answer`` with its verdict about findings."""
    return add_verdict(
        answer(
            program, model, profile=profile, unroll=unroll, timeout=timeout, limit=limit, thorough=thorough,
            passes=passes,
        )
    )  # fmt: skip


def _explain_stale_maps(search: Search) -> Reason | None:
    """Why a race on a tensor map leaves executions out: a copy may use either contents, and only the newer ones are
    explored. The older ones may show nothing else.
    """
    raced = (a.proxy for f in search.findings.values() if f.kind == "race" for a in f.accesses)
    if "tensormap" not in raced:
        return None
    because: Reasons = ()
    if has_one_map_write(search.program):
        other = Search(
            search.program, search.model, search.profile, search.unroll, search.limit, thorough=True,
            time_limit=search.time_limit, stale_maps=True, passes=search.passes,
        )  # fmt: skip
        late = search.time_limit.attempt(other.run)
        more = late or other.not_followed_reason or other.bound_reason or other.reordering
        if more is None and other.findings.keys() <= search.findings.keys():
            return None
        because = (late,) if late is not None else because
    return Reason(
        Cause.INTERLEAVINGS, "a copy may read a racing tensor map as it was before the write", because=because
    )


def _explain_lost_updates(search: Search) -> str | None:
    """Why atomics that race with writes leave executions out: they are not atomic (8.10.3), and no interleaving shows
    the updates that they lose.
    """
    pairs = [p for f in search.findings.values() if f.kind == "race" for p in permutations(f.accesses, 2)]
    beside = {a.span for a, other in pairs if other.access == "write"}
    atomics = {op.span for op in search.program.operations if isinstance(ops.performed_operation(op), ops.Atomic)}
    return "atomics that race may lose updates" if beside & atomics - {None} else None
