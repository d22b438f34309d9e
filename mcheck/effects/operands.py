"""The operands that determine the effect of an instruction, and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcheck.base.errors import InternalError
from mcheck.base.records import dataclass
from mcheck.effects.site import widened
from mcheck.ir import ops
from mcheck.ir.expr import Expr
from mcheck.ir.ops import Op

Value = int | tuple["Value", ...] | None
"""What an operand field holds once it is evaluated: a number, several, or nothing where it was not given."""


def decisive_fields(op: Op) -> tuple[str, ...]:
    """The decisive fields of an operation; of computations ``mapa`` alone has any."""
    return ("srcs",) if isinstance(op, ops.Alu) and op.op == "mapa" else op.decisive


def decisive_expressions(op: Op) -> Iterator[Expr]:
    """The expressions that have to be known, in the order of the fields."""
    for name in decisive_fields(op):
        yield from leaves(getattr(op, name))


def leaves(value: object) -> Iterator[Expr]:
    """The expressions that a field holds: itself, several, or none."""
    if isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    elif value is not None:
        yield value  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class Operands:
    """The values of the fields of one operation, by name."""

    values: dict[str, Value]

    def number(self, name: str) -> int:
        """An operand that is given."""
        value = self.values[name]
        if not isinstance(value, int):
            raise InternalError(f"operand {name} has no value")
        return value

    def optional_number(self, name: str) -> int | None:
        """An operand that may be left out."""
        value = self.values.get(name)
        return value if isinstance(value, int) else None

    def address(self, name: str) -> int:
        """An operand that is an address."""
        return widened(self.number(name))

    def numbers(self, name: str) -> tuple[int, ...]:
        """An operand that is a list."""
        value = self.values[name]
        if not isinstance(value, tuple):
            raise InternalError(f"operand {name} is not a list")
        return tuple(x for x in value if isinstance(x, int))

    def ranges(self, name: str) -> tuple[tuple[int, int], ...]:
        """An operand that is a list of (address, size)."""
        value = self.values[name]
        pairs = value if isinstance(value, tuple) else ()
        return tuple((widened(p[0]), p[1]) for p in pairs if isinstance(p, tuple))  # type: ignore[arg-type, misc]


def evaluate_operands(op: Op, number: Callable[[Expr], int]) -> Operands:
    """The decisive operands of an operation, each by the value that ``number`` gives."""

    def of(value: object) -> Value:
        if value is None:
            return None
        if isinstance(value, tuple):
            return tuple(of(item) for item in value)
        return number(value)  # type: ignore[arg-type]

    return Operands({name: of(getattr(op, name)) for name in decisive_fields(op)})
