"""What a process has compiled, in a form by which the process that it was forked from compiles the same.

Compiling takes a quarter of the time that a small module takes. A fork that answers one question forgets at its end
what it has compiled for the kinds of events that are frequent there; the next question about the module needs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mcheck.engines.protocol.incremental.generated_code import Known
from mcheck.engines.protocol.incremental.kinds import Shown
from mcheck.engines.protocol.incremental.state import compiled_for, compiled_tapes


class CompiledKind(NamedTuple):
    """A function for one kind of event. ``tape`` is the identity of the tape, which is the same in a fork; ``enters``:
    it is the function for new events, not that which computes an event again.
    """

    tape: int
    shown: Shown
    wanted: tuple[int, ...]
    circles: frozenset[int]
    known: Known | None
    enters: bool


def compiled_kinds() -> set[CompiledKind]:
    """All that this process has compiled."""
    return {
        CompiledKind(*key, known, enters)
        for key, (_, compiled) in compiled_tapes().items()
        for functions, enters in ((compiled.steps, True), (compiled.recheck_steps, False))
        for known in functions
    }


def compile_kinds(kinds: Iterable[CompiledKind]) -> None:
    """Compile what a fork has compiled; nothing for tapes that only the fork had."""
    tapes = {id(tape): tape for tape, _ in compiled_tapes().values()}
    for one in kinds:
        tape = tapes.get(one.tape)
        if tape is not None:
            compiled_for(tape, one.shown, one.wanted, one.circles).specialise(one.known, enters=one.enters)
