"""Axioms that the engine assumes, and how to tell that a model has them.

Executions grow in the order in which things happen: what is read has been written, what was waited for is there, a
write to a shared word goes on top of the others or, stale, below some, an atomic reads the newest one, an mbarrier has
one state. What a model demands of all that has to fit; what it makes of causality, of moral strength and of all else is
its own affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from types import UnionType

from mcheck.base.errors import Unsupported
from mcheck.cat import parse_model
from mcheck.cat.algebra.tape import TOTAL, Axiom, Tape, compile_model
from mcheck.engines.protocol.analysis.model_equivalence import is_equivalent
from mcheck.engines.protocol.incremental.pairs import APART, bounds_of
from mcheck.ir import ops
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size

BARRIERS = ops.Barrier | ops.ClusterBarrier | ops.WarpSync
LANE_SYNC = ops.Collective | ops.Wgmma
"""Where lanes meet: the instructions of a mask, and the groups that a warpgroup commits together."""
COHERENCE = ("empty (W * W & X & loc) \\ co", "empty (W * W & X \\ id) \\ (co | co^-1)")
TOTAL_COHERENCE = ("empty (W * W & loc \\ id) \\ (co | co^-1)",)
ATOMICITY = ("empty rmw & ((X & (rf^-1; co)); (X & co))",)
PLAIN_ATOMICITY = ("empty rmw & ((rf^-1; co); co)",)
SINGLE_COPY = (
    "irreflexive (X & rf); same-access; (X & (rf^-1; co)); same-access",
    "irreflexive (X & co); same-access; (X & co); same-access",
)
MBARRIER = ("irreflexive (phase | phase-order | phase-fr)+; X",)
"""Axioms, ``X`` being whatever relation the model has there; each tuple stands for all of its members."""

THIN_AIR = ("acyclic rf | addr | data | ctrl", "acyclic rf | po")
"""What no circle may consist of, so that no value comes from what depends on it; one of the two is enough."""
WAIT_ORDERS: tuple[tuple[type[ops.Op] | UnionType, str], ...] = (
    (ops.MbarrierInit, "acyclic phase | (phase-order \\ (INIT * _))"),
    (BARRIERS, "acyclic barrier"),
    (ops.Barrier, "acyclic rounds"),
    (LANE_SYNC, "acyclic meet"),
    (BARRIERS | LANE_SYNC, "acyclic exited | (po & (_ * EXIT))"),
    (ops.TensorCommit, "acyclic [COMMIT]; issue^-1; po; issue; [COMMIT]"),
)
"""What else, by the same axiom, in models that speak of asynchronous operations, where the program has operations of a
kind: nobody goes on before what is waited for.
"""

BARRIER_ROUNDS = "irreflexive rounds; (po | rf)+"
"""In such models, of programs with barriers that have counts: arrivals fall into rounds as they come, all of the above
being what puts them in order.
"""

ANY_RELATION = COHERENCE[:1]
"""Those whose ``X`` may be anything: where a write stands is asked of the model."""
LOCATION_RELATIONS = frozenset(("loc", "vloc", "overlap", "complete-overlap", "sr"))
"""What ``X`` may be in of the others: the engine has one order of the strong writes of a word, whoever makes them."""

EMPTINESS_AXIOMS = (*COHERENCE, *TOTAL_COHERENCE, *ATOMICITY, *PLAIN_ATOMICITY)
"""Those that say what has to be empty."""

PLACEHOLDER = "sr"
"""The base name that stands for ``X`` in a tape of these."""


def check_axioms(program: Program, tape: Tape) -> None:
    """Raises ``Unsupported`` if the model lacks an axiom that the engine assumes."""
    demands: list[tuple[str, list[tuple[str, ...]]]] = []
    code = list(map(ops.performed_operation, program.operations))
    if (text := _find_missing_acyclicity(tape, code)) is not None:
        raise Unsupported(f"the protocol engine does not follow what the model demands of causes: {text}")
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
            raise Unsupported(f"the protocol engine does not follow what the model demands of {what}: {ways[0][0]}")
    for axiom in (
        () if is_equivalent(tape) else _unknown_emptiness_axioms(tape, frozenset() if updates else frozenset(("rmw",)))
    ):
        raise Unsupported(f"the protocol engine does not follow the axiom {axiom.name} of the model")


def _find_missing_acyclicity(tape: Tape, code: list[ops.Op]) -> str | None:
    """The axiom that the model lacks for nothing to come from what comes only after it, in a program of this code."""
    waits = [text for kinds, text in WAIT_ORDERS if any(isinstance(op, kinds) for op in code)]
    if "issue" not in tape.bases:
        waits = []
    reads = any(isinstance(op, ops.Load | ops.Atomic) for op in code)
    if (reads or waits) and not any(_forbids_cycles(tape, (text, *waits)) for text in THIN_AIR):
        return " and ".join((THIN_AIR[0], *waits))
    counts = any(isinstance(op, ops.Barrier) and op.count is not None for op in code)
    return BARRIER_ROUNDS if counts and waits and not _orders_rounds(tape, waits) else None


def _forbids_cycles(tape: Tape, texts: tuple[str, ...]) -> bool:
    """Whether one axiom forbids all circles of what these say together."""
    return any(
        (a.test, a.negated, a.role) == ("irreflexive", False, "forbid")
        and tape.code[a.node].op == "plus"
        and all(_includes_union(tape, tape.code[a.node].a, text) for text in texts)
        for a in tape.axioms
    )


def _orders_rounds(tape: Tape, waits: list[str]) -> bool:
    """Whether an axiom keeps rounds of barriers in the order of program order, of reads and of what is waited for."""
    for a in tape.axioms:
        i = tape.code[a.node]
        if (a.test, a.negated, a.role, i.op) != ("irreflexive", False, "forbid", "seq"):
            continue
        then = tape.code[i.b]
        if tape.code[i.a].name == "rounds" and then.op == "plus":
            return all(_includes_union(tape, then.a, text) for text in ("acyclic po | rf", *waits))
    return False


def _includes_union(tape: Tape, n: int, text: str) -> bool:
    """Whether all members of the union that an axiom of this text speaks of are members of another one."""
    form, wanted = _compile_form(text)
    given = _members(tape, n, "or")
    parts = _members(form, form.code[wanted.node].a, "or")
    return all(
        any(_matches(form, least, tape, k, {}) for k in given for least in _with_minuend(form, part)) for part in parts
    )


def _with_minuend(form: Tape, n: int) -> tuple[int, ...]:
    """A node, and what it leaves something out of."""
    return (n, form.code[n].a) if form.code[n].op == "sub" else (n,)


BYTE_GRANULAR = (
    ops.TensorCopy | ops.TensormapReplace | ops.TensormapCopyFence | ops.Wgmma | ops.TensorCore | ops.TensorMove
)  # fmt: skip
"""Accesses that may begin or end anywhere; bulk copies and ``st.bulk`` do so at multiples of 8 bytes, if not of 16."""
DEFAULT_GRANULARITY = 8
"""Bytes of a scalar access that no such copy cuts."""
CP_ASYNC_GRANULARITY = 4
"""Bytes of which a ``cp.async`` copies a power of two that its addresses are multiples of (9.7.9.25.3.1)."""


def _may_tear(code: list[ops.Op]) -> bool:
    """Whether an access may cover a part of a scalar one, so that the scalar one has parts (8.2.2)."""
    scalars = (type_size(op.type) for op in code if isinstance(op, ops.Load | ops.Store | ops.Atomic))
    return max(scalars, default=0) > min(map(_granularity, code), default=DEFAULT_GRANULARITY)


def _granularity(op: ops.Op) -> int:
    """The bytes at multiples of which the parts of an access begin and end."""
    match op:
        case ops.Load() | ops.Store() | ops.Atomic() | ops.AsyncStore():
            return type_size(op.type)
        case ops.CpAsync():
            return CP_ASYNC_GRANULARITY if op.src_size is None else 1
        case ops.BulkCopy() if op.byte_mask is not None:
            return 1
        case ops.BulkCopy() if op.type is not None:
            return type_size(op.type)
        case _ if isinstance(op, BYTE_GRANULAR):
            return 1
    return DEFAULT_GRANULARITY


def _has_axiom(tape: Tape, text: str) -> bool:
    return any(_matches_form(tape, a, text) for a in tape.axioms)


def _matches_form(tape: Tape, axiom: Axiom, text: str) -> bool:
    """Whether an axiom is of a form."""
    form, wanted = _compile_form(text)
    same = (axiom.test, axiom.negated, axiom.role) == (wanted.test, wanted.negated, wanted.role)
    bound: dict[str, frozenset[int]] = {}
    if not same or not _matches(form, wanted.node, tape, axiom.node, bound):
        return False
    return text in ANY_RELATION or not any(_depends_on_threads(tape, k) for members in bound.values() for k in members)


def _depends_on_threads(tape: Tape, n: int) -> bool:
    """Whether a relation that ``X`` has to be in leaves pairs out by where their threads are."""
    return tape.code[n].op == "base" and tape.code[n].name not in LOCATION_RELATIONS


def _unknown_emptiness_axioms(tape: Tape, absent: frozenset[str]) -> Iterator[Axiom]:
    """The axioms that say what has to be empty in other words than those above, and can be broken: which pairs of weak
    accesses there are in rf and co is not followed, nor where two of them that are not known to overlap stand.
    """
    suspects = [a for a in tape.axioms if a.role != "flag" and a.test == "empty"]
    other = [a for a in suspects if not any(_matches_form(tape, a, form) for form in EMPTINESS_AXIOMS)]
    totals = [a for a in suspects if a.role == TOTAL and a not in other]
    bounds = bounds_of(tape, absent) if other or totals else []
    yield from (a for a in other if bounds[a.node].may)
    # no order of coherence holds accesses without a common byte
    yield from (a for a in totals if any(how == APART for _, _, how in bounds[a.node].may))


@cache
def _compile_form(text: str) -> tuple[Tape, Axiom]:
    said = re.sub(r"\bX\b", PLACEHOLDER, text)
    tape = compile_model(parse_model(f'"form"\n{said} as Form', "form.cat"))
    return tape, tape.axioms[0]


def _matches(form: Tape, f: int, tape: Tape, n: int, bound: dict[str, frozenset[int]]) -> bool:
    """Whether a node is of a form; ``bound`` is what stands for X, as the members of an intersection."""
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
    """Whether an intersection may stand for X."""
    return bound.setdefault(PLACEHOLDER, members) == members


def _members(tape: Tape, n: int, op: str) -> list[int]:
    """The members of a union or an intersection of several."""
    i = tape.code[n]
    return [*_members(tape, i.a, op), *_members(tape, i.b, op)] if i.op == op else [n]
