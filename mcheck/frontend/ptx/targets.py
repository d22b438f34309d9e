"""Check that the target of a module has its instructions: the assembler would not accept the module otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from mcheck.base.errors import McheckError
from mcheck.frontend.ptx.lowering import to_instruction
from mcheck.frontend.ptx.module import Arguments, Module, Statement
from mcheck.isa import decode


def check_target(module: Module) -> None:
    """Raises ``InputError`` at the first instruction that exists and that the module's target does not have.

    Instructions that the table does not know are skipped.
    """
    seen: set[tuple[object, ...]] = set()
    for function in module.functions.values():
        types = {register.name: register.type for register in function.registers}
        for statement in function.body:
            if any(isinstance(operand, Arguments) for operand in statement.operands):
                continue
            spelling = (statement.opcode, *map(type, statement.operands))
            if spelling not in seen:
                seen.add(spelling)
                _check_statement(module.target, types, statement)


def _check_statement(target: str, types: Mapping[str, str], statement: Statement) -> None:
    written = to_instruction(statement)
    try:
        decode(written, register_type=types.get, dialect=False)
    except McheckError:
        return
    decode(written, register_type=types.get, dialect=False, target=target)
