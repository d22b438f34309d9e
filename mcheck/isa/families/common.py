"""Slots, operands and lowering helpers that several families share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcheck.base.errors import Unsupported
from mcheck.ir.expr import Const, Expr, Reg, Unary
from mcheck.ir.ops import Op
from mcheck.ir.scopes import SCOPES
from mcheck.isa.instruction import Address, Operand, Pair, Scalar, Vector
from mcheck.isa.schema import Arg, Match, Qualifiers, Rule, Slot

SM_80 = ("sm_80",)
SM_90 = ("sm_90",)
SM_100 = ("sm_100",)


def scope_slot(*values: str, optional: bool = False) -> Slot:
    """``.cta .cluster .gpu .sys`` or the given ones of them; cluster came with PTX 7.8 and sm_90."""
    return Slot("scope", values or SCOPES, optional=optional, needs={"cluster": SM_90}, ptx={"cluster": "7.8"})


CACHE_HINT = Slot(
    "cache_hint", ("L2::cache_hint",), optional=True, needs={"L2::cache_hint": SM_80}, ptx={"L2::cache_hint": "7.4"}
)


def is_given(slot: str) -> Callable[[Qualifiers], bool]:
    """Is ``slot`` written?"""
    return lambda q: slot in q


def vector_length(q: Qualifiers) -> int | None:
    """The number in ``.v2``, ``.v4``, ``.v8``."""
    vec = q.get("vec")
    return int(vec[1:]) if vec else None


CACHE_POLICY = Arg("cache-policy", "src", "u64", when=is_given("cache_hint"))


def one_of(slot: str, *values: str) -> Callable[[Qualifiers], bool]:
    """Is ``slot`` one of ``values``?"""
    return lambda q: q.get(slot) in values


def require_scope_with_order(sem: Slot, scope: Slot) -> tuple[Rule, Rule]:
    """Memory order and scope are given together or not at all."""

    def legal(slot: Slot) -> str:
        return " or ".join("." + value for value in slot.values)

    return (
        Rule(lambda q: "sem" not in q or "scope" in q, "sem", "'.{sem}' needs a scope", f"{legal(scope)} with it"),
        Rule(
            lambda q: "scope" not in q or "sem" in q,
            "scope",
            "'.{scope}' needs a memory order",
            f"{legal(sem)} with it",
        ),
    )


def pairs(first: str, second: str, table: Mapping[str, tuple[str, ...]]) -> Rule:
    """``second`` must be in the row of ``first`` (a value of ``first`` without a row is free)."""

    def expected(q: Qualifiers) -> str:
        return ", ".join("." + value for value in table[q[first]])

    def test(q: Qualifiers) -> bool:
        row = table.get(q.get(first, ""))
        return row is None or q.get(second) in row

    return Rule(test, second, f"'.{{{first}}}' does not go with '.{{{second}}}'", expected)


# --- lowering -----------------------------------------------------------------------------------------


def value(operand: Operand) -> Expr:
    """The expression of a value operand; a negated predicate is ``!p``."""
    assert isinstance(operand, Scalar)
    return Unary("!", operand.expr) if operand.negated else operand.expr


def optional_value(match: Match, name: str) -> Expr | None:
    """The expression of an optional operand."""
    operand = match.args.get(name)
    return None if operand is None else value(operand)


def address(operand: Operand) -> Expr:
    """The address inside ``[address]``; a bare location is its own address."""
    if isinstance(operand, Address):
        operand = operand.items[0]
    assert isinstance(operand, Scalar)
    return operand.expr


def register(operand: Operand | None) -> Reg | None:
    """The register of a destination, ``None`` for a sink or no destination."""
    if isinstance(operand, Scalar):
        assert isinstance(operand.expr, Reg)
        return operand.expr
    return None


def registers(operand: Operand) -> tuple[Reg | None, ...]:
    """The destinations of a scalar, a vector or a pair."""
    match operand:
        case Vector():
            return tuple(register(item) for item in operand.items)
        case Pair():
            return register(operand.first), register(operand.second)
        case _:
            return (register(operand),)


def values(operand: Operand) -> tuple[Expr, ...]:
    """The sources of a scalar or a vector."""
    if isinstance(operand, Vector):
        return tuple(value(item) for item in operand.items)
    return (value(operand),)


def coordinates(operand: Operand) -> tuple[Expr, ...]:
    """The coordinates inside ``[map, {c0, c1}]``."""
    assert isinstance(operand, Address)
    return values(operand.items[1])


ZERO = Const(0)


def unsupported(match: Match, hint: str | None = None) -> Op:
    """A legal instruction that has no model here."""
    text = match.common["text"] or match.family.name
    message = f"'{text}' is legal but not modelled"
    raise Unsupported(message, match.common["span"], hint=hint, section=match.family.section)


def uncomputed(match: Match) -> Op:
    """Arithmetic on floating-point numbers, likewise."""
    return unsupported(match, hint="leave arithmetic out, unless control or addresses depend on it")


def shared_space(q: Qualifiers) -> str:
    """``.shared`` is ``.shared::cta``; an omitted space is generic addressing."""
    space = q.get("space", "generic")
    return "shared::cta" if space == "shared" else space
