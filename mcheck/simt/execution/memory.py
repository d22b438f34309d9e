"""The bytes of memory as far as control and addresses depend on them, each with its quality.

Covers the shared memory of all CTAs, the lanes' own memory, and what the launch gives: parameters, constants, the
initial contents of buffers. All else reads as unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.memory_layout import LOCAL_BASE
from mcheck.frontend.ptx.taint import UNKNOWN, UNKNOWN_NAMELESS
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, SHARED_WINDOW
from mcheck.semantics.tensor_map_values import MAP_SIZE
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.lanes import Quality
from mcheck.simt.execution.value_numbering import mix_numbers, number_contents

Index = NDArray[np.int64]
_PARTS = np.arange(0, MAP_SIZE, 8, dtype=np.uint64)
"""Offsets of the words of a tensor map."""


class Store:
    """Bytes and their quality; addresses are those of ``mcheck.frontend.ptx.memory_layout``, shared ones with or
    without their base.
    """

    def __init__(
        self, ctas: int, shared: int, lanes: int, local: int, contents: Iterable[tuple[int, bytes, bytes]],
        *, named: bool = False,
    ):  # fmt: skip
        self.size = max(shared, 1)
        self.local = max(local, 1)
        self.ctas = ctas
        self.shared = np.zeros(ctas * self.size, np.uint8), np.full(ctas * self.size, UNKNOWN_NAMELESS, np.uint8)
        self.own = np.zeros(lanes * self.local, np.uint8), np.full(lanes * self.local, UNKNOWN_NAMELESS, np.uint8)
        self.named = named
        self.times = 0
        self.maps: dict[int, int] = {}
        """Tensor maps that the kernel has written to global memory."""
        self.asked: set[int] = set()
        """Where what is given begins that was read or written."""
        known = sorted(contents)
        self.bases = [at for at, _, _ in known]
        self.given = [(np.frombuffer(d, np.uint8).copy(), np.frombuffer(q, np.uint8).copy()) for _, d, q in known]

    def load(self, address: Word, size: int, lanes: Index) -> tuple[Word, Quality]:
        """Read up to eight bytes in each lane."""
        value = mix_numbers(size, [address]) if self.named else np.zeros(len(lanes), np.uint64)
        quality = np.full(len(lanes), UNKNOWN if self.named else UNKNOWN_NAMELESS, np.uint8)
        for some, (data, known), at in self._places(address, size, lanes):
            where = at[:, None] + np.arange(size)
            raw = np.zeros((len(at), 8), np.uint8)
            raw[:, :size] = data[where]
            value[some] = raw.view(np.uint64)[:, 0]
            quality[some] = np.bitwise_or.reduce(known[where], axis=1)
        return value, quality

    def save(self, address: Word, size: int, lanes: Index, value: Word, quality: Quality) -> None:
        """Write up to eight bytes in each lane; of lanes that write one place the last one wins."""
        for some, (data, known), at in self._places(address, size, lanes):
            where = at[:, None] + np.arange(size)
            data[where] = np.ascontiguousarray(value[some])[:, None].view(np.uint8)[:, :size]
            known[where] = quality[some][:, None]

    def blur(self, lanes: Index, address: Quality) -> None:
        """Mark the lanes' own memory, any byte of which a write to an ``address`` of this quality may have changed."""
        known = np.where(address & UNKNOWN, address | np.uint8(UNKNOWN_NAMELESS), address)
        self.own[1].reshape(-1, self.local)[lanes] |= known[:, None]

    def zero(self, size: int) -> None:
        """Set the first bytes of every CTA's shared memory to known zeros."""
        for cta in range(self.ctas):
            first = cta * self.size
            self.shared[0][first : first + size], self.shared[1][first : first + size] = 0, 0

    def clear(self, address: int, size: int) -> None:
        """Set bytes of shared memory to known zeros."""
        first, last = self._shared_bytes(address, size)
        self.shared[0][first:last], self.shared[1][first:last] = 0, 0

    def forget(self, address: int, size: int) -> None:
        """Mark bytes as unknown data that are written by an operation whose values are not followed."""
        for memory, first, last, _ in self._ranges(address, size):
            self._forget(memory, first, last)

    def move(self, target: int, source: int, size: int) -> None:
        """Move bytes as far as they are known; the others become unknown data."""
        parts = [(at, d[i:j].copy(), q[i:j] == 0) for (d, q), i, j, at in self._ranges(source, size)]
        self.forget(target, size)
        for first, data, known in parts:
            for (held, quality), i, j, at in self._ranges(target + first, len(data)):
                some = known[at : at + j - i]
                held[i:j][some] = data[at : at + j - i][some]
                quality[i:j][some] = 0

    def knows_any(self, address: int, size: int) -> bool:
        """Whether some of these bytes are known."""
        return any((quality[i:j] == 0).any() for (_, quality), i, j, _ in self._ranges(address, size))

    def _ranges(self, address: int, size: int) -> Iterator[tuple[tuple[NDArray[np.uint8], Quality], int, int, int]]:
        """Where bytes of shared memory, or of what is given of global memory, are kept: the memory, from where to
        where, and how far behind the address.
        """
        first, last = self._shared_bytes(address, size)
        if first < last:
            yield self.shared, first, last, 0
        if GLOBAL_BASE <= address < SHARED_BASE:
            for base, given in zip(self.bases, self.given, strict=True):
                first, last = max(address - base, 0), min(address - base + size, len(given[0]))
                if first < last:
                    self.asked.add(base)
                    yield given, first, last, base + first - address

    def _forget(self, memory: tuple[NDArray[np.uint8], Quality], first: int, last: int) -> None:
        data, known = memory
        known[first:last] = UNKNOWN if self.named else UNKNOWN_NAMELESS
        if self.named and first < last:
            self.times += 1
            data[first:last] = number_contents(self.times << 32, last - first)

    def _shared_bytes(self, address: int, size: int) -> tuple[int, int]:
        """From where to where bytes of shared memory are in ``shared``; nothing of any other memory."""
        low = address - SHARED_BASE if address >= SHARED_BASE else address
        cta, offset = divmod(low, SHARED_WINDOW)
        if not (0 <= cta < self.ctas and offset < self.size):
            return 0, 0
        return cta * self.size + offset, cta * self.size + min(offset + size, self.size)

    def read_map(self, address: int) -> int | None:
        """The tensor map at an address (``mcheck.semantics.tensor_map_values``); ``None`` where its bytes are
        unknown.
        """
        if address in self.maps:
            return self.maps[address]
        parts = _PARTS + np.uint64(address)
        value, quality = self.load(parts, 8, np.zeros(len(parts), np.int64))
        return None if quality.any() else int.from_bytes(value.tobytes(), "little")

    def write_map(self, address: int, contents: int) -> None:
        """Write a tensor map."""
        if GLOBAL_BASE <= address < SHARED_BASE:
            self.forget(address, MAP_SIZE)
            self.maps[address] = contents
            return
        parts = _PARTS + np.uint64(address)
        value = np.frombuffer(contents.to_bytes(MAP_SIZE, "little"), np.uint64)
        self.save(parts, 8, np.zeros(len(parts), np.int64), value, np.zeros(len(parts), np.uint8))

    def _places(
        self, address: Word, size: int, lanes: Index
    ) -> Iterable[tuple[NDArray[np.bool_], tuple[NDArray[np.uint8], Quality], Index]]:
        """The lanes of each memory, with the indices of their first bytes there."""
        where = address.astype(np.int64)
        local = where >= LOCAL_BASE
        if local.any():
            inside = local & (where - LOCAL_BASE + size <= self.local)
            yield inside, self.own, lanes[inside] * self.local + (where[inside] - LOCAL_BASE)
        shared = ~local & ((where >= SHARED_BASE) | (where < GLOBAL_BASE))
        if shared.any():
            cta, offset = np.divmod(where & SHARED_BASE - 1, SHARED_WINDOW)
            inside = shared & (cta < self.ctas) & (offset + size <= self.size)
            yield inside, self.shared, cta[inside] * self.size + offset[inside]
        rest = ~local & ~shared
        if rest.any():
            for base in distinct(where[rest]):
                k = bisect_right(self.bases, int(base)) - 1
                if k >= 0 and int(base) + size <= self.bases[k] + len(self.given[k][0]):
                    some = rest & (where == base)
                    self.asked.add(self.bases[k])
                    yield some, self.given[k], where[some] - self.bases[k]
