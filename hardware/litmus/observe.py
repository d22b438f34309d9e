"""What is observed of a program: what its condition names, or else whatever it loads."""

from __future__ import annotations

from dataclasses import replace

from mcheck.answers.final import terms_of
from mcheck.program.condition import RegTerm
from mcheck.program.ops import Atomic, Load, performed
from mcheck.program.program import Program

MOST = 16
"""Registers that are watched where no condition says which."""


def observed(program: Program) -> Program:
    """The program with a condition that names what is observed."""
    if terms_of(program.condition):
        return program
    found: dict[RegTerm, None] = {}
    for thread in program.threads:
        for op in map(performed, thread.code):
            registers = op.dsts if isinstance(op, Load) else (op.dst,) if isinstance(op, Atomic) else ()
            for register in registers:
                if register is not None:
                    found[RegTerm(thread.index, register.name, f"{thread.name}:{register.name}")] = None
    return replace(program, condition=replace(program.condition, locations=tuple(found)[:MOST]))
