"""Equivalence of a model with the shipped ones; some reductions are sound only for these.

The comparison is semantic: names, the order of definitions and of the operands of a union or an intersection make no
difference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from mcheck.cat import load_model
from mcheck.cat.algebra.compiled_models import once_per_tape, tape_of
from mcheck.cat.algebra.tape import Tape, TapeCheck

SHIPPED = ("ptx-9.0", "ptx-9.3", "ptx-9.5")
OLDER = ("ptx-7.5", "ptx-6.0", "sc")
"""Older shipped models, with fewer axioms."""
NO_ORDERS = frozenset(("Atomicity", "SingleCopyRead", "SingleCopyWrite", "Mbarrier", "Rounds", "NoThinAir"))
"""Axioms that do not constrain the orders of strong accesses."""
Wanted = Callable[[TapeCheck], bool]


def has_equivalent_checks(tape: Tape, wanted: Wanted = lambda _: True, names: tuple[str, ...] = SHIPPED) -> bool:
    """Return whether the ``wanted`` checks are those of a shipped model, one of ``names``."""
    for shipped in map(_shipped, names):
        if (tape.code, tape.checks) == (shipped.code, shipped.checks):
            return True
        forms: dict[object, int] = {}
        if _checks(tape, wanted, forms) == _checks(shipped, wanted, forms):
            return True
    return False


@cache
def _shipped(name: str) -> Tape:
    return tape_of(load_model(name))


@once_per_tape
def is_equivalent(tape: Tape) -> bool:
    """Return whether all checks are those of a shipped model."""
    return has_equivalent_checks(tape)


@once_per_tape
def has_equivalent_orders(tape: Tape) -> bool:
    """Return whether the axioms that forbid orders of strong accesses are those of a shipped model."""
    return has_equivalent_checks(tape, lambda a: a.role != "flag" and a.name not in NO_ORDERS, (*SHIPPED, *OLDER))


@once_per_tape
def has_equivalent_coherence(tape: Tape) -> bool:
    """Return whether accesses to one word are ordered as in a shipped model (PTX ISA 9.0 section 8.10.5)."""
    return has_equivalent_checks(tape, lambda a: a.name in ("ScPerLocation", "SC"), (*SHIPPED, *OLDER))


@once_per_tape
def has_equivalent_atomicity(tape: Tape) -> bool:
    """Return whether atomics are not split as in a shipped model (PTX ISA 9.0 section 8.10.3)."""
    return has_equivalent_checks(tape, lambda a: a.name == "Atomicity")


@once_per_tape
def has_equivalent_races(tape: Tape) -> bool:
    """Return whether the axioms and the definitions of races are those of a shipped model.

    These make the weak reads of race-free programs deterministic.
    """
    return has_equivalent_checks(tape, lambda a: a.role != "flag" or a.name.startswith("RACE"))


def _checks(tape: Tape, wanted: Wanted, forms: dict[object, int]) -> tuple[frozenset[object], list[int]]:
    """Return the checks and recursive definitions; ``forms`` numbers the expressions of all models compared."""
    groups = [[(v, body) for v, body, kind in group if kind == 0] for group in tape.groups]
    variables = {v: (g, k) for g, group in enumerate(groups) for k, (v, _) in enumerate(group)}
    numbers: list[int] = []
    for n, i in enumerate(tape.code):
        sides = tuple(numbers[x] for x in (i.a, i.b) if x >= 0)
        key = variables.get(n) or (i.op, i.name, tuple(sorted(sides)) if i.op in ("or", "and") else sides)
        numbers.append(forms.setdefault(key, len(forms)))
    checks = ((a.name, a.test, a.negated, a.role, numbers[a.node]) for a in tape.checks if wanted(a))
    return frozenset(checks), [numbers[body] for group in groups for _, body in group]
