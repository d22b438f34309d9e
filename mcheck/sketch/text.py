"""Operands in the syntax of the block form: objects, elements, addresses, expressions."""

from __future__ import annotations

from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression of the block form: ``laneid * 4 + 16``."""

    text: str

    def _with(self, operator: str, other: object, *, swapped: bool = False) -> Expr:
        a, b = (show(other), self.text) if swapped else (self.text, show(other))
        return Expr(f"({a} {operator} {b})")

    def __add__(self, other: object) -> Expr:
        return self._with("+", other)

    def __radd__(self, other: object) -> Expr:
        return self._with("+", other, swapped=True)

    def __sub__(self, other: object) -> Expr:
        return self._with("-", other)

    def __mul__(self, other: object) -> Expr:
        return self._with("*", other)

    def __rmul__(self, other: object) -> Expr:
        return self._with("*", other, swapped=True)

    def __mod__(self, other: object) -> Expr:
        return self._with("%", other)

    def __floordiv__(self, other: object) -> Expr:
        return self._with("/", other)

    def __xor__(self, other: object) -> Expr:
        return self._with("^", other)

    def __and__(self, other: object) -> Expr:
        return self._with("&", other)


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to an object or a part of it: ``buf[2]``, ``buf[2] + 16``, ``full[0].at(1)`` (in CTA rank 1)."""

    name: str
    space: str
    elem: str
    indices: tuple[object, ...] = ()
    rank: object | None = None
    offset: object | None = None

    def __getitem__(self, index: object) -> Ref:
        return Ref(self.name, self.space, self.elem, (*self.indices, index), self.rank, self.offset)

    def at(self, rank: object) -> Ref:
        """The same object in the CTA with this rank in the cluster."""
        return Ref(self.name, self.space, self.elem, self.indices, rank, self.offset)

    def __add__(self, offset: object) -> Ref:
        total = offset if self.offset is None else Expr(f"({show(self.offset)} + {show(offset)})")
        return Ref(self.name, self.space, self.elem, self.indices, self.rank, total)

    @property
    def text(self) -> str:
        """The address, without brackets."""
        out = self.name + "".join(f"[{show(i)}]" for i in self.indices)
        if self.rank is not None:
            out += f"@({show(self.rank)})"
        return out if self.offset is None else f"{out} + {show(self.offset)}"

    @property
    def window(self) -> str:
        """The state space for instructions: ``global``, ``shared::cta``, or ``shared::cluster`` for a peer CTA."""
        if self.space == "global":
            return "global"
        return "shared::cta" if self.rank is None else "shared::cluster"


def show(value: object) -> str:
    """An operand as text."""
    return value.text if isinstance(value, Expr | Ref) else str(value)


def address(value: object) -> str:
    """An operand as an address, in brackets."""
    return f"[{show(value)}]"
