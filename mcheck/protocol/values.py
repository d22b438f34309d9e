"""The bytes of memory in one execution, as far as they are known."""

from __future__ import annotations

from bisect import bisect_right

from mcheck.graph.maps import MAP_SIZE, encode
from mcheck.program.program import Program


class Memory:
    """Bytes with a mask of those that are known; ``.shared`` starts unknown."""

    def __init__(self, program: Program) -> None:
        self._program = program
        own = [i for i in program.memory.instances if i.base == i.physical]
        self._bases = [i.base for i in own]
        self._instances = own
        self._data: dict[int, tuple[bytearray, bytearray]] = {}

    def _at(self, address: int) -> tuple[int, bytearray, bytearray]:
        k = bisect_right(self._bases, address) - 1
        base = self._bases[k]
        found = self._data.get(base)
        if found is None:
            item = self._instances[k].object
            content = item.init
            if item.tensor_map:
                content = b"".join(encode(spec).to_bytes(MAP_SIZE, "little") for spec in item.tensor_map)
            known = b"\1" if content is not None else b"\0"
            found = self._data[base] = (bytearray(content or bytes(item.size)), bytearray(known * item.size))
        return address - base, *found

    def load(self, address: int, size: int) -> int | None:
        """The bytes as an unsigned integer, ``None`` if some are unknown."""
        offset, data, known = self._at(address)
        if known.find(b"\0", offset, offset + size) >= 0:
            return None
        return int.from_bytes(data[offset : offset + size], "little")

    def read(self, address: int, size: int) -> tuple[bytes, bytes]:
        """The bytes, and a mask with 1 for each that is known."""
        offset, data, known = self._at(address)
        return bytes(data[offset : offset + size]), bytes(known[offset : offset + size])

    def write(self, address: int, data: bytes, known: bytes) -> None:
        """Writes bytes of which some may be unknown."""
        offset, held, mask = self._at(address)
        held[offset : offset + len(data)] = data
        mask[offset : offset + len(data)] = known

    def store(self, address: int, size: int, value: int | None) -> None:
        """Writes an integer, or makes the bytes unknown."""
        offset, data, known = self._at(address)
        if value is None:
            known[offset : offset + size] = bytes(size)
            return
        data[offset : offset + size] = (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
        known[offset : offset + size] = b"\1" * size
