"""The contents that memory has as an example where earlier launches may have written and it is not known what."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import collect_code
from mcheck.frontend.ptx.lane_arithmetic import type_bits
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.waits.value_tests import find_tests, read_test

MOST_WORDS = 16
"""The maximum number of examples: each is a check of the launch, made where errors of all before it are the same."""


def example_words(module: ptx.Module, entry: str) -> tuple[bytes, ...]:
    """Words of zero and one, and on either side of each number with which the kernel compares what it loads: contents
    by which it takes one way and the other.
    """
    words = [bytes(4), (1).to_bytes(4, "little"), *_tested_words(module, entry)]
    return tuple(dict.fromkeys(words))[:MOST_WORDS]


def _tested_words(module: ptx.Module, entry: str) -> Iterator[bytes]:
    for unit in collect_code(module, entry).units:
        body = unit.function.body
        for at, statement in enumerate(body):
            if statement.kind not in (Kind.LOAD, Kind.ATOMIC):
                continue
            for place in find_tests(unit.function, at):
                test = read_test(body[place], statement.operands[0], _number)
                for value in () if test is None else test.examples:
                    yield value.to_bytes(type_bits(body[place].opcode.type) // 8, "little")


def _number(operand: ptx.Operand) -> int | None:
    return operand.value if isinstance(operand, ptx.Immediate) else None
