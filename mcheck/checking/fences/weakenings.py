"""Weaker forms of an instruction: of its order, its scope, its spaces, its wait (PTX ISA 8.5 and 9.7.13)."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.checking.fences.instructions import Instruction
from mcheck.ir.scopes import SCOPES

ACCESSES = frozenset(("ld", "st", "atom", "red", "multimem"))
MEMBAR = ("sys", "gl", "cta")
MORE_PENDING = 8
"""The maximum number of further groups that a wait may leave pending."""
GROUPS = (("cp", "async", "wait_group"), ("cp", "async", "bulk", "wait_group"), ("wgmma", "wait_group"))
_MBARRIER = frozenset(("arrive", "arrive_drop", "expect_tx", "parity", "test_wait", "try_wait"))
_WARP = ("bar", "warp", "sync")


def weaker_forms(instruction: Instruction) -> tuple[tuple[str, ...], ...]:
    """Chains of texts, each weaker than the one before; what no assembler would take may be among them."""
    chains = [tuple(map(instruction.with_opcode, forms)) for forms in _opcodes(instruction.opcode)]
    chains += _longer_pending(instruction), _warp_barrier(instruction)
    return tuple(dict.fromkeys(chain for chain in chains if chain))


def _opcodes(opcode: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    head = opcode[0]
    if opcode[:2] == ("fence", "proxy"):
        yield from _fewer_spaces(opcode)
        if "tensormap::generic" in opcode:
            yield _narrower(opcode, SCOPES[::-1])
    elif head == "membar":
        yield _narrower(opcode, MEMBAR)
    elif head == "fence" and not any("::" in part or part == "mbarrier_init" for part in opcode):
        yield from _orders(opcode, ("sc", "acq_rel"), ())
        yield _narrower(opcode, SCOPES[::-1])
    elif head in ACCESSES:
        yield from _orders(opcode, ("acq_rel",), ("relaxed",))
        yield _narrower(opcode, SCOPES[::-1])
    elif head == "mbarrier":
        yield _relaxed_mbarrier(opcode)
        yield _narrower(opcode, SCOPES[::-1])
    elif opcode[:3] == ("barrier", "cluster", "arrive") and "relaxed" not in opcode:
        yield ((*opcode[:3], "relaxed", *(part for part in opcode[3:] if part != "release")),)
    elif opcode == ("cp", "async", "bulk", "wait_group"):
        yield ((*opcode, "read"),)


def _orders(
    opcode: tuple[str, ...], strong: tuple[str, ...], weakest: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ...]]:
    """``sc``, ``acq_rel``, one side of it, ``relaxed``: what is left of this behind the order of the opcode."""
    for side in ("acquire", "release"):
        ladder = (*strong, side, *weakest)
        at = next((k for k, part in enumerate(opcode) if part in ladder), None)
        if at is not None:
            below = ladder[ladder.index(opcode[at]) + 1 :]
            yield tuple((*opcode[:at], part, *opcode[at + 1 :]) for part in below)


def _narrower(opcode: tuple[str, ...], scopes: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    at = next((k for k, part in enumerate(opcode) if k and part in scopes), None)
    if at is None:
        return ()
    below = scopes[scopes.index(opcode[at]) + 1 :]
    return tuple((*opcode[:at], part, *opcode[at + 1 :]) for part in below)


def _fewer_spaces(opcode: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    if opcode == ("fence", "proxy", "async"):
        yield ((*opcode, "shared::cluster"), (*opcode, "shared::cta"))
        yield ((*opcode, "global"),)
    elif opcode == ("fence", "proxy", "async", "shared::cluster"):
        yield ((*opcode[:3], "shared::cta"),)


def _relaxed_mbarrier(opcode: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """An arrival releases and a wait acquires, at the scope of the CTA, where nothing else is said (9.7.13.15)."""
    if opcode[1] not in ("arrive", "arrive_drop", "test_wait", "try_wait") or "relaxed" in opcode:
        return ()
    at = next(k for k, part in enumerate(opcode) if k and part not in _MBARRIER)
    rest = opcode[at + 1 :] if opcode[at] in ("release", "acquire") else ("cta", *opcode[at:])
    return ((*opcode[:at], "relaxed", *rest),)


def _longer_pending(instruction: Instruction) -> tuple[str, ...]:
    opcode, operand = instruction.opcode, instruction.operands
    if not operand.isdigit() or not any(opcode[: len(head)] == head for head in GROUPS):
        return ()
    return tuple(instruction.with_opcode(opcode, str(int(operand) + more)) for more in range(1, MORE_PENDING + 1))


def _warp_barrier(instruction: Instruction) -> tuple[str, ...]:
    """The barrier of a warp in place of that of the CTA."""
    opcode = instruction.opcode
    if opcode[0] not in ("bar", "barrier") or "sync" not in opcode or "warp" in opcode or instruction.text[-1:] != ";":
        return ()
    return (instruction.with_opcode(_WARP, "0xffffffff"),)
