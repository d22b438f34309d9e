"""Axioms that the protocol engine relies on, and a check that a model has them.

Execution graphs grow in the order in which things happen: what is read has been written, what was waited for has
happened, a write to a shared word is the newest or, stale, below some others, an atomic reads the newest one, an
mbarrier has one state. The axioms of a model about all that have to fit; whatever else it says, of causality or moral
strength, is free.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import permutations

from mcheck.base.errors import Unsupported
from mcheck.cat import parse_model
from mcheck.cat.algebra.tape import TOTAL, Tape, TapeCheck, compile_model
from mcheck.engines.protocol.analysis.model_equivalence import is_equivalent
from mcheck.engines.protocol.incremental.pairs import APART, bounds_of
from mcheck.ir import ops
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size

COHERENCE = ("empty (W * W & X & loc) \\ co", "empty (W * W & X \\ id) \\ (co | co^-1)")
TOTAL_COHERENCE = ("empty (W * W & loc \\ id) \\ (co | co^-1)",)
ATOMICITY = ("empty rmw & ((X & (rf^-1; co)); (X & co))",)
PLAIN_ATOMICITY = ("empty rmw & ((rf^-1; co); co)",)
SINGLE_COPY = (
    "irreflexive (X & rf); same-access; (X & (rf^-1; co)); same-access",
    "irreflexive (X & co); same-access; (X & co); same-access",
)
MBARRIER = ("irreflexive (phase | phase-order | phase-fr)+; X",)
"""Forms of axioms; ``X`` is whatever relation the model has there, and each tuple stands for all of its members."""

THIN_AIR = ("acyclic rf | addr | data | ctrl", "acyclic rf | po")
"""What must be acyclic so that no value is read out of thin air; one of the two is enough."""


def _is_lane_sync(op: ops.Op) -> bool:
    """Return whether lanes synchronise: at an instruction with a mask, or by groups that a warpgroup commits."""
    return op.facets.converges or isinstance(op, ops.Wgmma)


WAIT_ORDERS: tuple[tuple[Callable[[ops.Op], bool], str], ...] = (
    (lambda op: isinstance(op, ops.MbarrierInit), "acyclic phase | (phase-order \\ (INIT * _))"),
    (lambda op: op.facets.synchronises, "acyclic barrier"),
    (lambda op: isinstance(op, ops.Barrier), "acyclic rounds"),
    (_is_lane_sync, "acyclic meet"),
    (lambda op: op.facets.synchronises or _is_lane_sync(op), "acyclic exited | (po & (_ * EXIT))"),
    (lambda op: isinstance(op, ops.TensorCommit), "acyclic [COMMIT]; issue^-1; po; issue; [COMMIT]"),
)
"""What the same axiom must contain in models of asynchronous operations, for programs with operations of a kind.

Nobody continues before what is waited for.
"""

BARRIER_ROUNDS = "irreflexive rounds; (po | rf)+"
"""In such models, for programs with barriers that have counts: rounds are in the order of the arrivals.

That order is made of everything above.
"""

ANY_RELATION = COHERENCE[:1]
"""Forms whose ``X`` may be any relation: the engine asks the model for the coherence position of a write."""
LOCATION_RELATIONS = frozenset(("loc", "vloc", "overlap", "complete-overlap", "sr"))
"""What ``X`` may consist of in the others: the engine has one order of the strong writes of a word, by whatever thread.
"""

EMPTINESS_AXIOMS = (*COHERENCE, *TOTAL_COHERENCE, *ATOMICITY, *PLAIN_ATOMICITY)
"""The forms that say that a relation is empty."""

PLACEHOLDER = "sr"
"""The base name that stands for ``X`` in a tape of these forms."""


def check_axioms(program: Program, tape: Tape) -> None:
    """Raise ``Unsupported`` if the model lacks an axiom that the engine relies on."""
    demands: list[tuple[str, list[tuple[str, ...]]]] = []
    code = list(map(ops.performed_operation, program.operations))
    if (text := _find_missing_acyclicity(tape, code)) is not None:
        raise Unsupported(f"the protocol engine does not support what the model requires of causes: {text}")
    if not tape.total_co:
        demands.append(("coherence", [COHERENCE, TOTAL_COHERENCE]))
    if "same-access" in tape.bases and _may_tear(code):
        demands.append(("single copies", [SINGLE_COPY]))
    updates = any(isinstance(op, ops.Atomic) or getattr(op, "reduce", None) for op in code)
    if updates:
        demands.append(("atomics", [ATOMICITY, PLAIN_ATOMICITY]))
    if "phase-order" in tape.bases and any(isinstance(op, ops.MbarrierInit) for op in code):
        demands.append(("mbarriers", [MBARRIER]))
    for what, ways in demands:
        if not any(all(_has_axiom(tape, form) for form in way) for way in ways):
            raise Unsupported(f"the protocol engine does not support what the model requires of {what}: {ways[0][0]}")
    for axiom in (
        () if is_equivalent(tape) else _unknown_emptiness_axioms(tape, frozenset() if updates else frozenset(("rmw",)))
    ):
        raise Unsupported(f"the protocol engine does not support the axiom {axiom.name} of the model")


def _find_missing_acyclicity(tape: Tape, code: list[ops.Op]) -> str | None:
    """Return the axiom that the model lacks to exclude cycles through reads and waits, for a program with this code."""
    waits = [text for is_kind, text in WAIT_ORDERS if any(map(is_kind, code))]
    if "issue" not in tape.bases:
        waits = []
    reads = any(isinstance(op, ops.ScalarRead) for op in code)
    if (reads or waits) and not any(_forbids_cycles(tape, (text, *waits)) for text in THIN_AIR):
        return " and ".join((THIN_AIR[0], *waits))
    counts = any(isinstance(op, ops.Barrier) and op.count is not None for op in code)
    return BARRIER_ROUNDS if counts and waits and not _orders_rounds(tape, waits) else None


def _forbids_cycles(tape: Tape, texts: tuple[str, ...]) -> bool:
    """Return whether one axiom forbids all cycles of the union of these relations."""
    return any(
        (a.test, a.negated, a.role) == ("irreflexive", False, "forbid")
        and tape.code[a.node].op == "plus"
        and all(_includes_union(tape, tape.code[a.node].a, text) for text in texts)
        for a in tape.checks
    )


def _orders_rounds(tape: Tape, waits: list[str]) -> bool:
    """Return whether an axiom keeps the rounds of barriers in the order of po, rf and waits."""
    for a in tape.checks:
        i = tape.code[a.node]
        if (a.test, a.negated, a.role, i.op) != ("irreflexive", False, "forbid", "seq"):
            continue
        then = tape.code[i.b]
        if tape.code[i.a].name == "rounds" and then.op == "plus":
            return all(_includes_union(tape, then.a, text) for text in ("acyclic po | rf", *waits))
    return False


def _includes_union(tape: Tape, n: int, text: str) -> bool:
    """Return whether all members of the union in an axiom of this text are members of another union."""
    form, wanted = _compile_form(text)
    given = _members(tape, n, "or")
    parts = _members(form, form.code[wanted.node].a, "or")
    return all(
        any(_matches(form, least, tape, k, {}) for k in given for least in _with_minuend(form, part)) for part in parts
    )


def _with_minuend(form: Tape, n: int) -> tuple[int, ...]:
    """Return a node, and the minuend if it is a difference."""
    return (n, form.code[n].a) if form.code[n].op == "sub" else (n,)


DEFAULT_GRANULARITY = 8
"""Granularity of bulk copies, if it is not 16 bytes, and of ``st.bulk``: they split no scalar access of this size."""
CP_ASYNC_GRANULARITY = 4
"""Granularity of ``cp.async``: it copies a power of two bytes, at least these, aligned (9.7.9.25.3.1)."""


def _may_tear(code: list[ops.Op]) -> bool:
    """Return whether an access may cover a part of a scalar one, which is then split (8.2.2)."""
    scalars = (type_size(op.type) for op in code if isinstance(op, ops.ScalarAccess))
    return max(scalars, default=0) > min(map(_granularity, code), default=DEFAULT_GRANULARITY)


def _granularity(op: ops.Op) -> int:
    """Return the bytes at multiples of which the parts of an access begin and end."""
    match op:
        case ops.ScalarAccess() | ops.AsyncStore():
            return type_size(op.type)
        case ops.CpAsync():
            return CP_ASYNC_GRANULARITY if op.src_size is None else 1
        case ops.BulkCopy() if op.byte_mask is not None:
            return 1
        case ops.BulkCopy() if op.type is not None:
            return type_size(op.type)
        case ops.BulkCopy() | ops.Fill():
            return DEFAULT_GRANULARITY
    return 1 if op.facets.reads or op.facets.writes else DEFAULT_GRANULARITY


def _has_axiom(tape: Tape, text: str) -> bool:
    return any(_matches_form(tape, a, text) for a in tape.checks)


def _matches_form(tape: Tape, axiom: TapeCheck, text: str) -> bool:
    """Return whether an axiom has a form."""
    form, wanted = _compile_form(text)
    same = (axiom.test, axiom.negated, axiom.role) == (wanted.test, wanted.negated, wanted.role)
    bound: dict[str, frozenset[int]] = {}
    if not same or not _matches(form, wanted.node, tape, axiom.node, bound):
        return False
    return text in ANY_RELATION or not any(_depends_on_threads(tape, k) for members in bound.values() for k in members)


def _depends_on_threads(tape: Tape, n: int) -> bool:
    """Return whether a relation that ``X`` is in excludes pairs by the places of their threads."""
    return tape.code[n].op == "base" and tape.code[n].name not in LOCATION_RELATIONS


def _unknown_emptiness_axioms(tape: Tape, absent: frozenset[str]) -> Iterator[TapeCheck]:
    """Yield the emptiness axioms of other forms that can be violated.

    The engine tracks neither rf and co of weak accesses, nor the order of two of them that are not known to overlap.
    """
    suspects = [a for a in tape.checks if a.role != "flag" and a.test == "empty"]
    other = [a for a in suspects if not any(_matches_form(tape, a, form) for form in EMPTINESS_AXIOMS)]
    totals = [a for a in suspects if a.role == TOTAL and a not in other]
    bounds = bounds_of(tape, absent) if other or totals else []
    yield from (a for a in other if bounds[a.node].may)
    # no order of coherence holds accesses without a common byte
    yield from (a for a in totals if any(how == APART for _, _, how in bounds[a.node].may))


@cache
def _compile_form(text: str) -> tuple[Tape, TapeCheck]:
    said = re.sub(r"\bX\b", PLACEHOLDER, text)
    tape = compile_model(parse_model(f'"form"\n{said} as Form', "form.cat"))
    return tape, tape.checks[0]


def _matches(form: Tape, f: int, tape: Tape, n: int, bound: dict[str, frozenset[int]]) -> bool:
    """Return whether a node matches a form; ``bound`` is what X stands for, as the members of an intersection."""
    i, j = form.code[f], tape.code[n]
    if i.name == PLACEHOLDER:
        return _bind_placeholder(frozenset(_members(tape, n, "and")), bound)
    if (i.op, i.name) != (j.op, j.name):
        return False
    if i.op not in ("and", "or"):
        pairs = [(x, y) for x, y in ((i.a, j.a), (i.b, j.b)) if x >= 0]
        return all(_matches(form, x, tape, y, bound) for x, y in pairs)
    parts, others = _members(form, f, i.op), _members(tape, n, i.op)
    fixed = [x for x in parts if form.code[x].name != PLACEHOLDER]
    for some in permutations(others, len(fixed)):
        known = dict(bound)
        rest = frozenset(others) - frozenset(some)
        fits = not rest if len(fixed) == len(parts) else bool(rest) and _bind_placeholder(rest, known)
        if fits and all(_matches(form, x, tape, y, known) for x, y in zip(fixed, some, strict=True)):
            bound.update(known)
            return True
    return False


def _bind_placeholder(members: frozenset[int], bound: dict[str, frozenset[int]]) -> bool:
    """Return whether X may stand for an intersection, and bind it."""
    return bound.setdefault(PLACEHOLDER, members) == members


def _members(tape: Tape, n: int, op: str) -> list[int]:
    """Return the members of a nested union or intersection."""
    i = tape.code[n]
    return [*_members(tape, i.a, op), *_members(tape, i.b, op)] if i.op == op else [n]
