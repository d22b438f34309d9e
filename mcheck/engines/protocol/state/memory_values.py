"""The contents of memory in one execution, as far as they are known."""

from __future__ import annotations

from bisect import bisect_right

from mcheck.ir.program import Program
from mcheck.semantics.tensor_map_values import MAP_SIZE, encode
from mcheck.semantics.terms import Term, Uid, Unknown, evaluate

SPARSE_SIZE = 1 << 22
"""The size from which on only the known bytes of an object are stored."""


class Memory:
    """The bytes of all memory objects, with a mask of the known ones; ``.shared`` starts unknown."""

    def __init__(self, program: Program) -> None:
        self._program = program
        own = [i for i in program.memory.instances if i.base == i.physical]
        self._bases = [i.base for i in own]
        self._instances = own
        self._data: dict[int, tuple[bytearray, bytearray]] = {}
        self._sparse = [
            (i.base, i.base + i.object.size) for i in own if i.object.size > SPARSE_SIZE and i.object.init is None
        ]
        self._sparse_bytes: dict[int, int] = {
            i.base + at + k: byte
            for i in own
            if self._large(i.base)
            for at, held in i.object.held
            for k, byte in enumerate(held)
        }
        """The known bytes of large objects, by address."""

    def copy(self) -> Memory:
        """Copy the memory."""
        return self.copy_into(self._program)

    def copy_into(self, program: Program) -> Memory:
        """Copy the bytes into memory for another program, whose objects have the same bases and are no smaller; bytes
        that only the larger objects have are as declared.
        """
        out = Memory(program)
        out._sparse_bytes = dict(self._sparse_bytes)
        for base, (data, known) in self._data.items():
            _, more, mask = out._locate(base)
            more[: len(data)], mask[: len(known)] = data, known
        return out

    def _large(self, address: int) -> bool:
        """Whether an address is in a large object."""
        return any(low <= address < high for low, high in self._sparse)

    def _locate(self, address: int) -> tuple[int, bytearray, bytearray]:
        """The offset of an address in its object, the object's bytes, and the mask of the known ones."""
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
            for at, held in item.held:
                found[0][at : at + len(held)], found[1][at : at + len(held)] = held, b"\1" * len(held)
        return address - base, *found

    def load(self, address: int, size: int) -> int | None:
        """The bytes as an unsigned integer; ``None`` if some are unknown."""
        if self._sparse and self._large(address):
            found, mask = self.read(address, size)
            return None if 0 in mask else int.from_bytes(found, "little")
        offset, data, known = self._locate(address)
        if known.find(b"\0", offset, offset + size) >= 0:
            return None
        return int.from_bytes(data[offset : offset + size], "little")

    def read(self, address: int, size: int) -> tuple[bytes, bytes]:
        """The bytes, and a mask with 1 for each known byte."""
        if self._sparse and self._large(address):
            if not self._sparse_bytes:
                return bytes(size), bytes(size)
            found = [self._sparse_bytes.get(at, -1) for at in range(address, address + size)]
            return bytes(max(x, 0) for x in found), bytes(int(x >= 0) for x in found)
        offset, data, known = self._locate(address)
        return bytes(data[offset : offset + size]), bytes(known[offset : offset + size])

    def write(self, address: int, data: bytes, known: bytes) -> None:
        """Write bytes, some of which may be unknown."""
        if self._sparse and self._large(address):
            if self._sparse_bytes or any(known):
                for k, (value, sure) in enumerate(zip(data, known, strict=True)):
                    self._sparse_bytes.pop(address + k, None)
                    if sure:
                        self._sparse_bytes[address + k] = value
            return
        offset, held, mask = self._locate(address)
        held[offset : offset + len(data)] = data
        mask[offset : offset + len(data)] = known

    def known_contents(self, without: frozenset[int]) -> tuple[object, ...]:
        """The known bytes among those accessed, in a comparable form; objects at the addresses ``without`` are left
        out.
        """
        dense = [
            (base, bytes(known), bytes(x & -k & 255 for x, k in zip(data, known, strict=True)))
            for base, (data, known) in sorted(self._data.items())
            if base not in without and 1 in known
        ]
        return tuple(dense), tuple(sorted(self._sparse_bytes.items()))

    def store(self, address: int, size: int, value: int | None) -> None:
        """Write an integer; ``None`` makes the bytes unknown."""
        if self._sparse and self._large(address):
            given = b"" if value is None else (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
            self.write(address, given or bytes(size), bytes([1 if given else 0]) * size)
            return
        offset, data, known = self._locate(address)
        if value is None:
            known[offset : offset + size] = bytes(size)
            return
        data[offset : offset + size] = (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
        known[offset : offset + size] = b"\1" * size


Bytes = tuple[bytes, bytes]
"""Bytes, and a mask of the known ones."""


def evaluate_bytes(term: Term, size: int, read: dict[Uid, Bytes]) -> Bytes:
    """The bytes of a term once the reads of its operation have returned; data that is only moved may be known in
    part.
    """
    if not isinstance(term, int):
        if term[0] == "e" and term[1] in read:
            return read[term[1]]
        if term[0] == "cat":
            parts = [evaluate_bytes(part, width, read) for part, width in term[1]]
            return b"".join(p[0] for p in parts), b"".join(p[1] for p in parts)
        if term[0] == "slice" and term[1][0] == "e" and term[1][1] in read:
            data, known = read[term[1][1]]
            return data[term[2] : term[2] + term[3]], known[term[2] : term[2] + term[3]]
    value = evaluate_value(term, read)
    if value is None:
        return bytes(size), bytes(size)
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little"), b"\1" * size


def evaluate_value(term: Term, read: dict[Uid, Bytes]) -> int | None:
    """The value of a term once the reads of its operation have returned; ``None`` if it is unknown."""

    def result(uid: Uid) -> int:
        found = read.get(uid)
        if found is None or 0 in found[1]:
            raise Unknown
        return int.from_bytes(found[0], "little")

    def part(whole: Term, offset: int, size: int) -> int:
        data, known = (x[offset : offset + size] for x in evaluate_bytes(whole, offset + size, read))
        if 0 in known:
            raise Unknown
        return int.from_bytes(data, "little")

    try:
        return evaluate(term, result, part)
    except Unknown:
        return None
