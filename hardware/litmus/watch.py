"""What of a program is watched: the terms of its condition, and where the runner finds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hardware.emit import CannotEmit
from hardware.litmus import views
from hardware.litmus.fit import owner_of
from hardware.litmus.objects import Objects
from hardware.litmus.printer import window
from hardware.litmus.views import View
from mcheck.answers.final_states import terms_of
from mcheck.ir.condition import MemTerm, RegTerm
from mcheck.ir.memory import Instance
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size


@dataclass(frozen=True, slots=True)
class Watched:
    """A term of the condition: in ``slot`` of the results, or ``offset`` bytes into global object ``object``."""

    label: str
    size: int
    slot: int | None = None
    object: int | None = None
    offset: int = 0


@dataclass(slots=True)
class Watch:
    """All terms; ``registers`` has (slot, register) by thread, ``dumped`` (slot, offset, size) by CTA."""

    watched: list[Watched] = field(default_factory=list)
    registers: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    dumped: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    slots: int = 0


def watch(program: Program, objects: Objects, offset_of: Callable[[Instance], int]) -> Watch:
    """The terms of a program, with its global objects, whose shared ones lie somewhere in a CTA's block;
    raises ``CannotEmit``.
    """
    found = Watch()
    for term in terms_of(program.condition):
        if isinstance(term, RegTerm):
            kind = program.threads[term.thread].types.get(term.reg)
            if kind is None:
                raise CannotEmit(f"the register of {term.label} has no type")
            found.registers.setdefault(term.thread, []).append((found.slots, term.reg))
            found.watched.append(Watched(term.label, 1 if kind == "pred" else type_size(kind), slot=found.slots))
            found.slots += 1
        elif isinstance(term, MemTerm):
            _memory(found, program, term, objects, offset_of)
        else:
            raise CannotEmit(f"the term {term}")
    return found


def _memory(
    found: Watch, program: Program, term: MemTerm, objects: Objects, offset_of: Callable[[Instance], int]
) -> None:
    if term.size not in (1, 2, 4, 8):
        raise CannotEmit(f"the size of {term.label}")
    instance = owner_of(program, term.address)
    at = term.address - instance.physical
    if instance.cta is None:
        if View(instance.object.name, "surface") in objects.views:
            raise CannotEmit(views.NO_ADDRESS)
        number = objects.numbers[instance.object.name]
        found.watched.append(Watched(term.label, term.size, object=number, offset=at))
        return
    cta, _ = window(term.address)
    found.dumped.setdefault(cta, []).append((found.slots, offset_of(instance) + at, term.size))
    found.watched.append(Watched(term.label, term.size, slot=found.slots))
    found.slots += 1
