"""Lines and operands in two forms: the text for the assembler and the tree for ``decode``."""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.base.records import dataclass
from mcheck.ir.expr import Const, Name, Reg
from mcheck.isa.instruction import Address, Instruction, Operand, Pair, Sink, Value, Vector

REGISTERS: dict[str, str] = {
    "p": "pred",
    "rs": "b16",
    "r": "b32",
    "rd": "b64",
    "rq": "b128",
    "ff": "f32",
    "fd": "f64",
}
"""The register families that every generated module declares, with their types."""

COUNT = 160
"""How many registers of each family there are."""


OBJECTS: dict[str, str] = {"gbl": "global", "shr": "shared", "cst": "const"}
"""The objects that every generated module declares, with their state spaces."""


def object_space(name: str) -> str | None:
    """The state space of a declared object."""
    return OBJECTS.get(name)


def register_type(name: str) -> str | None:
    """The declared type of a register."""
    return REGISTERS.get(name.rstrip("0123456789"))


@dataclass(frozen=True, slots=True)
class Sample:
    """An operand as the assembler reads it and as ``decode`` gets it."""

    text: str
    operand: Operand


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction to ask about; ``change`` says how it was made, ``family`` for which entry of the table."""

    opcode: tuple[str, ...]
    operands: tuple[Sample, ...]
    family: str
    change: str

    @property
    def text(self) -> str:
        operands = ", ".join(sample.text for sample in self.operands)
        return ".".join(self.opcode) + (f" {operands}" if operands else "")

    @property
    def instruction(self) -> Instruction:
        return Instruction(opcode=self.opcode, operands=tuple(s.operand for s in self.operands), text=self.text)


def reg(prefix: str, number: int) -> Sample:
    """A register operand."""
    return Sample(f"{prefix}{number}", Value(Reg(f"{prefix}{number}")))


def constant(value: int) -> Sample:
    """A literal operand."""
    return Sample(str(value), Value(Const(value)))


def memory(*items: Sample) -> Sample:
    """``[items]``."""
    return Sample(
        "[" + ", ".join(s.text for s in items) + "]",
        Address(items[0].operand, rest=tuple(s.operand for s in items[1:])),
    )


def vector(items: Sequence[Sample]) -> Sample:
    """``{items}``."""
    return Sample("{" + ", ".join(s.text for s in items) + "}", Vector(tuple(s.operand for s in items)))


def pair(first: Sample, second: Sample) -> Sample:
    """``first|second``."""
    return Sample(f"{first.text}|{second.text}", Pair(first.operand, second.operand))


def negated(number: int) -> Sample:
    """``!p``."""
    return Sample(f"!p{number}", Value(Reg(f"p{number}"), negated=True))


def named(name: str) -> Sample:
    """The address of an object."""
    return memory(Sample(name, Value(Name(name))))


SINK = Sample("_", Sink())
