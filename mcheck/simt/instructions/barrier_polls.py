"""Polls around a barrier, as they are reached: what a lane waits for, and the test of the lanes that it meets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from mcheck.frontend.ptx.code import Unit
from mcheck.ir.ops import Op
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.compiler import Compiler, FindBarrierWait
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.waits.barrier_waits import (
    BarrierWait,
    comes_back,
    find_barrier_wait,
    is_deciding_barrier,
    registers_around,
)
from mcheck.simt.execution.waits.broadcast_waits import Broadcast, find_broadcast, find_reader, touches_before_meeting
from mcheck.simt.execution.waits.meetings import Meeting, Meetings
from mcheck.simt.execution.waits.value_tests import AwaitedValue
from mcheck.simt.instructions.access_operands import to_generic


def lone_lanes(c: Cluster, mask: Mask) -> list[int]:
    """The lanes that are the only ones of their CTA."""
    lanes = np.flatnonzero(mask)
    _, first, count = np.unique(c.lanes.cta[lanes], return_index=True, return_counts=True)
    return [int(lane) for lane in lanes[first[count == 1]]]


def find_barrier_waits(k: Compiler, unit: Unit, at: int, size: int) -> FindBarrierWait | None:
    """How to find what a lane waits for at a load or an atomic that is repeated around a barrier, or whose value it
    hands to others; ``None`` if there is nothing to do that with.
    """
    if at not in k.barrier_waits:
        k.barrier_waits[at] = _make_finder(k, unit, at, size) if _is_handed_on(k, unit) else None
    return k.barrier_waits[at]


def _is_handed_on(k: Compiler, unit: Unit) -> bool:
    """Whether a function has what may hand a value to other threads of its CTA and end a loop with it."""
    if unit.start not in k.barriers_decide:
        body = unit.function.body
        shared = any(s.kind is Kind.STORE and s.opcode.space == "shared" for s in body)
        loops = any(s.kind is Kind.BRANCH for s in body)
        k.barriers_decide[unit.start] = loops and (
            shared or any(s.kind is Kind.SHUFFLE or is_deciding_barrier(s) for s in body)
        )
    return k.barriers_decide[unit.start]


def _make_finder(k: Compiler, unit: Unit, at: int, size: int) -> FindBarrierWait:
    finder = _Finder(k, unit, at)

    def find(lane: int) -> tuple[AwaitedValue, Meeting] | None:
        found = finder.find(lane)
        return None if found is None or type_size(found[0].type) != size else found

    return find


class _Finder:
    """What lanes wait for at one place, and where they meet others."""

    def __init__(self, k: Compiler, unit: Unit, at: int) -> None:
        self.k, self.unit, self.place = k, unit, at - unit.start
        function = unit.function
        results = {r.index for r in function.body[self.place].defs}
        self.read = sorted(registers_around(function, self.place) - results)
        names = {key[1] for key in k.places.shared if key[0] in ("", function.name)}
        self.symbols = {name: k.symbol_address(unit, name) for name in names}
        self.waits: dict[object, BarrierWait | None] = {}
        self.broadcasts: dict[object, Broadcast | None] = {}

    def find(self, lane: int) -> tuple[AwaitedValue, Meeting] | None:
        """What a lane waits for."""
        given, start, function = self.sure_registers(lane, self.read), self.unit.start, self.unit.function
        key = tuple(given.items())
        if key not in self.waits:
            plain = function.body[self.place].kind is Kind.LOAD
            self.waits[key] = find_barrier_wait(function, self.place, given) if plain else None
        if (wait := self.waits[key]) is not None:
            return wait.wait, Meeting(start + wait.barrier, partial(self._come_back, wait))
        symbols = self.addresses(lane)
        asks = key, tuple(symbols.items()), lane % WARP
        if asks not in self.broadcasts:
            self.broadcasts[asks] = find_broadcast(function, self.place, given, symbols, lane)
        if (found := self.broadcasts[asks]) is None:
            return None
        of_warp = found.word is None and not found.has_barrier
        write = start + found.write if found.tested and found.word is not None else None
        return found.wait, Meeting(start + found.meeting, partial(self._receive, found, lane), of_warp, write)

    def sure_registers(self, lane: int, registers: Iterable[int]) -> dict[int, int]:
        """What a lane is sure to hold in some registers, as it does in all other clusters."""
        k, frame = self.k, self.unit.frame
        sure = [r for r in registers if not k.lanes.quality[frame + r][lane]]
        if k.differs is not None:
            sure = [r for r in sure if not k.differs(frame + r, np.array([lane]))[0]]
        return {r: int(k.lanes.values[frame + r][lane]) for r in sure}

    def addresses(self, lane: int) -> dict[str, int]:
        """The addresses of variables in shared memory."""
        return {name: int(np.broadcast_to(at, self.k.lanes.count)[lane]) for name, at in self.symbols.items()}

    def _come_back(self, wait: BarrierWait, _: Meetings, __: Sequence[Sequence[Op]], others: Mask) -> bool:
        used = sorted(registers_around(self.unit.function, wait.barrier))
        alike = {tuple(self.sure_registers(one, used).items()) for one in np.flatnonzero(others).tolist()}
        return all(comes_back(self.unit.function, wait.barrier, dict(one), again=wait.again) for one in alike)

    def _receive(
        self, wait: Broadcast, leader: int, meetings: Meetings, code: Sequence[Sequence[Op]], others: Mask
    ) -> bool:
        """Whether these lanes wait for what another one hands on; what they learn of it is noted."""
        lanes = np.flatnonzero(others)
        if wait.word is None and (lanes // WARP != leader // WARP).any():
            return False  # lanes of another warp do not receive what this one hands on
        places = self._reader_places(wait, lanes.tolist())
        if places is None:
            return False
        if wait.word is not None:
            address, size = wait.word
            word = int(to_generic(np.array([address], np.uint64))[0]), size
            if any(touches_before_meeting(code[lane], *word) for lane in places):
                return False
            together = others.copy()
            together[leader] = True
            meetings.words[word] = meetings.words.get(word, together) & together
            start = self.unit.start
            meetings.receives.update((lane, start + place) for lane, place in [*places.items(), (leader, wait.read)])
        return True

    def _reader_places(self, wait: Broadcast, lanes: list[int]) -> dict[int, int] | None:
        """By lane, where it receives what is handed on; ``None`` if one of them does not wait for it."""
        function = self.unit.function
        used = sorted(registers_around(function, wait.meeting))
        predicates = {r.index for r in function.registers if r.type == "pred"}
        sure = {lane: self.sure_registers(lane, used) for lane in lanes}
        alike = set.intersection(*(set(given.items()) for given in sure.values())) if sure else set()
        reads: dict[object, int | None] = {}

        def place_of(lane: int, given: dict[int, int]) -> int | None:
            key = tuple(given.items())
            if key not in reads:
                reads[key] = find_reader(function, wait, given, self.addresses(lane))
            return reads[key]

        places: dict[int, int] = {}
        for lane, given in sure.items():
            # What differs between lanes hardly ever decides anything here, but for predicates.
            place = place_of(lane, {r: v for r, v in given.items() if r in predicates or (r, v) in alike})
            place = place_of(lane, given) if place is None else place
            if place is None:
                return None
            places[lane] = place
        return places
