"""Bytes of memory in units of one size, wherever they lie, with the marks of what is known of them; by NumPy.

Almost always all units lie in one object, which is then a table of units; else they are moved one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcheck.base.records import dataclass
from mcheck.semantics.memory import Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """``data`` has the shape (units, bytes), and so has ``known``, with a 1 for each known byte (``None``: all are)."""

    data: Bytes
    known: Bytes | None = None

    def __getitem__(self, chosen: Any) -> Units:
        return Units(self.data[chosen], None if self.known is None else self.known[chosen])

    def __len__(self) -> int:
        return len(self.data)


def take(memory: Memory, addresses: Integers, unit: int) -> Units:
    """The units at ``addresses``."""
    import numpy as np

    if len(addresses) == 0:
        return Units(np.empty((0, unit), np.uint8))
    low, high = int(addresses.min()), int(addresses.max())
    view, offset = memory.view(low)
    if offset + high - low + unit > len(view):
        pieces = [memory.read(address, unit) for address in addresses.tolist()]
        data = np.frombuffer(bytearray().join(piece for piece, _ in pieces), np.uint8).reshape(-1, unit)
        if all(known is None for _, known in pieces):
            return Units(data)
        marks = bytearray().join(b"\1" * unit if known is None else known for _, known in pieces)
        return Units(data, np.frombuffer(marks, np.uint8).reshape(-1, unit))
    places = _places(addresses, low - offset, offset % unit, unit)
    data = _table(view, offset % unit, unit).take(places, axis=0)
    known_view = memory.known_view(low)
    if known_view is None:
        return Units(data)
    known = _table(known_view, offset % unit, unit).take(places, axis=0)
    return Units(data, None if known.all() else known)


def put(memory: Memory, addresses: Integers, units: Units) -> None:
    """Writes the units to ``addresses``; bytes that are not known become so there."""
    import numpy as np

    if len(addresses) == 0:
        return
    unit = units.data.shape[1]
    low, high = int(addresses.min()), int(addresses.max())
    view, offset = memory.view(low)
    if offset + high - low + unit > len(view):
        for k, address in enumerate(addresses.tolist()):
            marks = None if units.known is None else units.known[k].tobytes()
            memory.write(address, units.data[k].tobytes(), marks)
        return
    places = _places(addresses, low - offset, offset % unit, unit)
    whole(_table(view, offset % unit, unit))[places] = whole(np.ascontiguousarray(units.data))
    known = memory.known_view(low) if units.known is None else memory.marks(low)
    if known is not None:
        new = np.ones((1, unit), np.uint8) if units.known is None else np.ascontiguousarray(units.known)
        whole(_table(known, offset % unit, unit))[places] = whole(new)


def whole(units: Bytes) -> NDArray[Any]:
    """The same units, each as one number: NumPy moves these much faster than rows of bytes."""
    import numpy as np

    return units.view(np.complex128 if units.shape[1] == 16 else np.uint64).reshape(-1)


def elementwise(size: int, *known: Bytes | None) -> Bytes | None:
    """The marks of elements of ``size`` bytes that are computed from operands with these marks: whole or not at all."""
    import numpy as np

    given = [marks for marks in known if marks is not None]
    if not given:
        return None
    parts = np.minimum.reduce([np.ascontiguousarray(marks).reshape(-1, size).min(axis=1) for marks in given])
    return np.repeat(parts, size).reshape(given[0].shape)


def _table(view: Bytes, phase: int, unit: int) -> Bytes:
    return view[phase : phase + (len(view) - phase) // unit * unit].reshape(-1, unit)


def _places(addresses: Integers, base: int, phase: int, unit: int) -> Integers:
    return (addresses - (base + phase)) // unit
