"""One flat store: the bytes of all objects in a row, and where an access falls in it (8.2)."""

from __future__ import annotations

from mcheck.ir.memory import MemoryMap, TensorMapSpec
from tests.interleavings.state import Misuse, NotCovered, State

LARGEST = 4096
"""Bytes of a program that is looked at."""
MAP = 128
"""Bytes of a tensor map."""


class Store:
    """Where the objects of a program lie in ``State.memory``."""

    def __init__(self, memory: MemoryMap) -> None:
        self.starts: list[tuple[int, int, int]] = []
        self.maps: list[TensorMapSpec] = []
        self.opaque: list[tuple[int, int]] = []
        first: list[int | None] = []
        for instance in memory.instances:
            item = instance.object
            if item.alias_of is not None or item.held:
                raise NotCovered("aliases")
            self.starts.append((instance.base, item.size, len(first)))
            if item.tensor_map:
                self.opaque.append((len(first), item.size))
                first += self._maps(item.tensor_map)
            else:
                first += [None] * item.size if item.init is None else list(item.init)
        if len(first) > LARGEST:
            raise NotCovered("much memory")
        self.first = tuple(first)

    def _maps(self, declared: tuple[TensorMapSpec, ...]) -> list[int]:
        """A map is opaque: here its first bytes are the address of the tensor, and the next one says what was declared
        with it. So a map that is copied, or gets another address, stays one.
        """
        found: list[int] = []
        for spec in declared:
            self.maps.append(spec)
            found += (*spec.global_address.to_bytes(8, "little"), len(self.maps), *bytes(MAP - 9))
        return found

    def place(self, address: int, size: int) -> int:
        """Where bytes lie in the store."""
        for base, length, start in self.starts:
            if base <= address < base + length:
                if address + size > base + length:
                    raise Misuse("UB103", "UB108")
                return start + address - base
        raise Misuse("UB103", "UB108")

    def access(self, state: State, address: int, size: int, alignment: int) -> int:
        """The same for an access of a thread, which may touch no valid mbarrier (9.7.13.15)."""
        if address % alignment:
            raise Misuse("UB102", "UB103", "UB108")
        at = self.place(address, size)
        if any(place < address + size and address < place + 8 for place, _ in state.objects):
            raise Misuse("UB202", "UB203")
        return at

    def read(self, state: State, at: int, size: int) -> int | None:
        """The unsigned number that bytes are."""
        found = state.memory[at : at + size]
        return None if None in found else int.from_bytes(bytes(found), "little")  # type: ignore[arg-type]

    def write(self, state: State, at: int, size: int, value: int | None) -> State:
        """A number into bytes."""
        new = [None] * size if value is None else (value % (1 << 8 * size)).to_bytes(size, "little")
        return self.put(state, at, tuple(new))

    def put(self, state: State, at: int, new: tuple[int | None, ...]) -> State:
        """Bytes into the store."""
        return state._replace(memory=(*state.memory[:at], *new, *state.memory[at + len(new) :]))
