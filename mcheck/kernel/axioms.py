"""Axioms that the engine takes for granted, and how to tell that a model has them.

Executions grow in the order in which things happen: a write to a shared word goes on top of the others or, stale, below
some, an atomic reads the newest one, an mbarrier has one state. What a model demands of coherence order, of atomics
and of mbarriers has to fit that; what it makes of causality, of moral strength and of all else is its own affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import permutations

from mcheck.algebra.tape import TOTAL, Axiom, Tape, compile_model
from mcheck.cat import parse_model
from mcheck.errors import Unsupported
from mcheck.graph.terms import type_size
from mcheck.kernel.shipped import as_shipped
from mcheck.program import ops
from mcheck.program.program import Program
from mcheck.views.pairs import APART, bounds_of

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

EMPTY = (*COHERENCE, *TOTAL_COHERENCE, *ATOMICITY, *PLAIN_ATOMICITY)
"""Those that say what has to be empty."""

ANY = "sr"
"""The base name that stands for ``X`` in a tape of these."""


def check_axioms(program: Program, tape: Tape) -> None:
    """Raises ``Unsupported`` if the model lacks an axiom that the engine takes for granted."""
    demands: list[tuple[str, list[tuple[str, ...]]]] = []
    code = list(map(ops.performed, program.operations))
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
        if not any(all(_has(tape, form) for form in way) for way in ways):
            raise Unsupported(f"the kernel engine does not follow what the model demands of {what}: {ways[0][0]}")
    for axiom in () if as_shipped(tape) else _others(tape, frozenset() if updates else frozenset(("rmw",))):
        raise Unsupported(f"the kernel engine does not follow the axiom {axiom.name} of the model")


UNEVEN = (
    ops.CpAsync | ops.AsyncStore | ops.TensorCopy | ops.TensormapReplace | ops.TensormapCopyFence | ops.Wgmma
    | ops.TensorCore | ops.TensorMove
)  # fmt: skip
"""Accesses that may begin or end within a scalar one; bulk copies and ``st.bulk`` do so at multiples of 8 bytes."""
SCALAR = 8
"""Bytes of a scalar access that no such copy cuts."""


def _may_tear(code: list[ops.Op]) -> bool:
    """Whether an access may cover a part of a scalar one, so that the scalar one has parts (8.2.2)."""
    sizes = {type_size(op.type) for op in code if isinstance(op, ops.Load | ops.Store | ops.Atomic)}
    cut = any(
        isinstance(op, UNEVEN) or (isinstance(op, ops.BulkCopy) and (op.byte_mask is not None or op.reduce is not None))
        for op in code
    )
    return cut or len(sizes) > 1 or any(size > SCALAR for size in sizes)


def _has(tape: Tape, text: str) -> bool:
    return any(_is_of(tape, a, text) for a in tape.axioms)


def _is_of(tape: Tape, axiom: Axiom, text: str) -> bool:
    """Whether an axiom is of a form."""
    form, wanted = _form(text)
    same = (axiom.test, axiom.negated, axiom.role) == (wanted.test, wanted.negated, wanted.role)
    return same and _fits(form, wanted.node, tape, axiom.node, {})


def _others(tape: Tape, absent: frozenset[str]) -> Iterator[Axiom]:
    """The axioms that say what has to be empty in other words than those above, and can be broken: which pairs of weak
    accesses there are in rf and co is not followed, nor where two of them that are not known to overlap stand.
    """
    suspects = [a for a in tape.axioms if a.role != "flag" and a.test == "empty"]
    other = [a for a in suspects if not any(_is_of(tape, a, form) for form in EMPTY)]
    totals = [a for a in suspects if a.role == TOTAL and a not in other]
    bounds = bounds_of(tape, absent) if other or totals else []
    yield from (a for a in other if bounds[a.node].may)
    # no order of coherence holds accesses without a common byte
    yield from (a for a in totals if any(how == APART for _, _, how in bounds[a.node].may))


@cache
def _form(text: str) -> tuple[Tape, Axiom]:
    tape = compile_model(parse_model(f'"form"\n{text.replace("X", ANY)} as Form', "form.cat"))
    return tape, tape.axioms[0]


def _fits(form: Tape, f: int, tape: Tape, n: int, bound: dict[str, frozenset[int]]) -> bool:
    """Whether a node is of a form; ``bound`` is what stands for X, as the members of an intersection."""
    i, j = form.code[f], tape.code[n]
    if i.name == ANY:
        return _stands(frozenset(_parts(tape, n, "and")), bound)
    if (i.op, i.name) != (j.op, j.name):
        return False
    if i.op not in ("and", "or"):
        pairs = [(x, y) for x, y in ((i.a, j.a), (i.b, j.b)) if x >= 0]
        return all(_fits(form, x, tape, y, bound) for x, y in pairs)
    parts, others = _parts(form, f, i.op), _parts(tape, n, i.op)
    fixed = [x for x in parts if form.code[x].name != ANY]
    for some in permutations(others, len(fixed)):
        known = dict(bound)
        rest = frozenset(others) - frozenset(some)
        fits = not rest if len(fixed) == len(parts) else bool(rest) and _stands(rest, known)
        if fits and all(_fits(form, x, tape, y, known) for x, y in zip(fixed, some, strict=True)):
            bound.update(known)
            return True
    return False


def _stands(members: frozenset[int], bound: dict[str, frozenset[int]]) -> bool:
    """Whether an intersection may stand for X."""
    return bound.setdefault(ANY, members) == members


def _parts(tape: Tape, n: int, op: str) -> list[int]:
    """The members of a union or an intersection of several."""
    i = tape.code[n]
    return [*_parts(tape, i.a, op), *_parts(tape, i.b, op)] if i.op == op else [n]
