"""Byte memory: the contents of every object, per state space and CTA, and which of its bytes are known.

Addresses are those of ``mcheck.ir.memory`` (generic aliases are resolved to the bytes behind them). Scalars are
read and written as integers; arrays as NumPy views, without copying. A byte is unknown until something is written to
it if its object started without contents, as ``.shared`` objects do (PTX ISA 9.0 section 5.1.7).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mcheck.ir.memory import Instance, MemoryMap
from mcheck.semantics.undefined import Misuse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]


class Block:
    """The bytes of one object at one place. ``known`` has a byte of 1 for every known one, ``None`` if all are."""

    __slots__ = ("data", "instance", "known")

    def __init__(self, instance: Instance) -> None:
        init = instance.object.init
        size = instance.object.size
        self.instance = instance
        self.data = bytearray(size)
        self.known: bytearray | None = None
        if init is None:
            self.known = bytearray(size)
            for at, held in instance.object.held:
                self.data[at : at + len(held)] = held
                self.known[at : at + len(held)] = b"\1" * len(held)
        else:
            # An initialiser may be shorter than its object; the rest is zero.
            self.data[: len(init)] = init

    def settle(self, offset: int, size: int, known: bool | bytes | bytearray) -> None:
        """Marks bytes as known or not."""
        if known is True:
            if self.known is not None:
                self.known[offset : offset + size] = b"\1" * size
            return
        if self.known is None:
            self.known = bytearray(b"\1") * len(self.data)
        self.known[offset : offset + size] = bytes(size) if known is False else known


class Memory:
    """All objects of a ``MemoryMap``; raises ``Misuse`` (UB103) for an address range outside every object."""

    __slots__ = ("_bases", "_by_physical", "_instances", "blocks")

    def __init__(self, layout: MemoryMap) -> None:
        self._instances = sorted(layout.instances, key=lambda instance: instance.base)
        self._bases = [instance.base for instance in self._instances]
        self.blocks = {i.physical: Block(i) for i in self._instances if i.physical == i.base}
        self._by_physical = {i.base: self.blocks[i.physical] for i in self._instances}

    def locate(self, address: int, size: int = 1) -> tuple[Block, int]:
        """The block and the offset in it of ``size`` bytes at ``address`` (any integer); they lie in one object."""
        k = bisect_right(self._bases, address) - 1
        if k >= 0:
            instance = self._instances[k]
            offset = address - instance.base
            if offset + size <= instance.object.size:
                return self._by_physical[instance.base], offset
            if offset < instance.object.size:
                beyond = offset + size - instance.object.size
                raise Misuse(
                    "UB103", f"{size} bytes at {address:#x} run {beyond} past the end of {instance.label}", "6.4.1"
                )
        raise Misuse("UB103", f"the address {address:#x} is in no object", "PTX ISA 9.0 section 6.4.1")

    def span(self, address: int, size: int) -> tuple[Block, int] | None:
        """What ``locate`` gives; ``None`` where that raises."""
        k = bisect_right(self._bases, address) - 1
        if k < 0:
            return None
        instance = self._instances[k]
        offset = address - instance.base
        return None if offset + size > instance.object.size else (self._by_physical[instance.base], offset)

    def find(self, address: int) -> Instance | None:
        """The object that holds the byte at ``address``, under the name by which the address reaches it."""
        k = bisect_right(self._bases, address) - 1
        if k < 0:
            return None
        instance = self._instances[k]
        return instance if address < instance.base + instance.object.size else None

    # --- scalars --------------------------------------------------------------------------------------

    def load(self, address: int, size: int) -> int | None:
        """``size`` bytes as a little-endian unsigned integer; ``None`` if one of them is unknown."""
        block, offset = self.locate(address, size)
        if block.known is not None and 0 in block.known[offset : offset + size]:
            return None
        return int.from_bytes(block.data[offset : offset + size], "little")

    def store(self, address: int, size: int, value: int | None) -> bool:
        """Writes an integer, cut to ``size`` bytes, or makes the bytes unknown. Did anything change?"""
        block, offset = self.locate(address, size)
        end = offset + size
        if value is None:
            block.settle(offset, size, False)
            return True
        new = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        changed = block.data[offset:end] != new or (block.known is not None and 0 in block.known[offset:end])
        block.data[offset:end] = new
        block.settle(offset, size, True)
        return changed

    # --- arrays ---------------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> tuple[bytes, bytes | None]:
        """A snapshot of ``size`` bytes, and which of them are known (``None``: all)."""
        if size == 0:
            return b"", None
        block, offset = self.locate(address, size)
        data = bytes(block.data[offset : offset + size])
        if block.known is None:
            return data, None
        known = bytes(block.known[offset : offset + size])
        return data, known if 0 in known else None

    def write(self, address: int, data: bytes, known: bytes | None = None) -> None:
        """Writes ``data``; bytes whose mark in ``known`` is 0 become unknown."""
        if not data:
            return
        block, offset = self.locate(address, len(data))
        block.data[offset : offset + len(data)] = data
        block.settle(offset, len(data), True if known is None else known)

    def view(self, address: int) -> tuple[Bytes, int]:
        """The whole object at ``address`` as a writable array of bytes, and the offset of ``address`` in it."""
        import numpy as np

        block, offset = self.locate(address)
        return np.frombuffer(block.data, np.uint8), offset

    def known_view(self, address: int) -> Bytes | None:
        """The marks of known bytes of the object at ``address``, writable; ``None`` if all are known."""
        import numpy as np

        block, _ = self.locate(address)
        return None if block.known is None else np.frombuffer(block.known, np.uint8)

    def marks(self, address: int) -> Bytes:
        """``known_view`` of an object some of whose bytes are about to become unknown."""
        import numpy as np

        block, offset = self.locate(address)
        if block.known is None:
            block.settle(offset, 0, b"")
        assert block.known is not None
        return np.frombuffer(block.known, np.uint8)

    def load_object(self, instance: Instance, data: bytes) -> None:
        """Replaces the contents of an object from its start on; raises ``ValueError`` if ``data`` is longer."""
        if len(data) > instance.object.size:
            raise ValueError(f"{len(data)} bytes for {instance.label}, which has {instance.object.size}")
        self.write(instance.base, data)


def as_bytes(array: Any) -> bytes:
    """The little-endian bytes of a NumPy array in row-major order."""
    import numpy as np

    values = np.ascontiguousarray(array)
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("<"))
    return values.tobytes()


def changed_ranges(before: bytes, after: bytes) -> Iterable[tuple[int, int]]:
    """The half-open ranges in which two contents of equal length differ."""
    start = None
    for k, (a, b) in enumerate(zip(before, after, strict=True)):
        if a != b and start is None:
            start = k
        elif a == b and start is not None:
            yield start, k
            start = None
    if start is not None:
        yield start, len(after)
