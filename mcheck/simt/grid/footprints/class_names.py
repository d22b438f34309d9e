"""Names of values that hold in every cluster of a class.

Lanes that store one value to one place count as one store (``joint_stores.distinct_stores``): that decides what is
recorded, so it has to be so in every cluster of the class. A value of which the coordinates are part has a class name
beside its number, or the name of its unknown contents: 0 where it is the same in all clusters, a hash of its slopes
where it is an affine form, else a hash of the instruction and of the numbers and class names that it reads, of bytes
loaded from memory also where and when, or a fresh name. So by induction over the instructions *two values with equal
numbers and equal class names are equal in every cluster of the class*. Shared memory keeps the class name of each byte.
So a word that is loaded with the name of an affine form that has been stored is that form.
"""

from __future__ import annotations

from dataclasses import field
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.value_numbering import COMMUTATIVE, mix_numbers
from mcheck.simt.parametric.affine import Slopes
from mcheck.simt.parametric.shared_bytes import SharedBytes

_NONE = np.uint64(0)
_SLOPES, _FRESH, _BYTE, _BYTES, _PLACE, _PAIR = range(11, 17)
_HIDDEN = frozenset(("addc", "subc", "madc"))
"""Instructions that read more than their operands: the carry."""


def slope_names(slopes: Slopes) -> Word:
    """The class names of affine forms."""
    if not slopes.any():
        return np.zeros(slopes.shape[1], np.uint64)
    alike = bool((slopes == slopes[:, :1]).all())
    named = mix_numbers(_SLOPES, (slopes[:, :1] if alike else slopes).astype(np.uint64))
    return np.where(slopes.any(axis=0), named, _NONE)


def result_names(statement: ptx.Statement, given: list[tuple[Word, Word]]) -> Word | None:
    """The class names of results, from the numbers and class names of all operands; ``None`` if those do not say."""
    if statement.opcode.name in _HIDDEN:
        return None
    pairs = [mix_numbers(_PAIR, pair) for pair in given]
    if statement.opcode.name in COMMUTATIVE and len(pairs) > 1:
        pairs[:2] = np.minimum(pairs[0], pairs[1]), np.maximum(pairs[0], pairs[1])
    return mix_numbers(crc32(statement.opcode.text.encode()), pairs)


def are_merged_alike(address: Word, numbers: list[Word], qualities: list[Word], names: list[Word]) -> bool:
    """Whether lanes that store one value to one place by one instruction do so in every cluster of the class: those of
    equal numbers have equal class names. Unknown values of a warp count as one whatever they are; of those with names
    none may depend on the coordinates then, for in other clusters they may be known. Values without a name are their
    lane's own.
    """
    if len(distinct(address)) == len(address):
        return True
    quality = np.bitwise_or.reduce(qualities)
    open_ = (quality & ~np.uint64(taint.UNKNOWN)) != 0
    values, with_names = [address, *numbers, *qualities], [address, *numbers, *qualities, *names]
    if _count(values, ~open_) != _count(with_names, ~open_):
        return False
    depends = np.logical_or.reduce([name != _NONE for name in names])
    unknown = ~open_ & (quality != _NONE) & np.isin(address, address[depends & ~open_])
    return _count(values, unknown) == _count([address], unknown)


def _count(columns: list[Word], some: Mask) -> int:
    """The number of different rows."""
    return int(np.unique(np.stack(columns)[:, some], axis=1).shape[1])


@dataclass(slots=True)
class NamedBytes:
    """The class names of the bytes of shared memory, and the number of the current load."""

    bytes: SharedBytes
    names: NDArray[np.uint64]
    moment: int = 0
    slopes: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """By the name of a word that was stored whole, its slopes, if it is an affine form."""

    @classmethod
    def empty(cls, ctas: int, size: int) -> NamedBytes:
        """All bytes are the same in all clusters."""
        shared = SharedBytes(ctas, size)
        return cls(shared, np.zeros(shared.count, np.uint64))

    def fresh(self, lanes: NDArray[np.int64]) -> Word:
        """Names that no other value has."""
        self.moment += 1
        return mix_numbers(_FRESH, [np.array([self.moment], np.uint64), lanes.astype(np.uint64)])

    def at_place(self, address: Word, form: Word) -> Word:
        """Names of what an instruction loads by itself, at addresses that are affine forms with these names."""
        self.moment += 1
        return mix_numbers(_PLACE, [np.array([self.moment], np.uint64), address, form])

    def load(self, address: Word, size: int, lanes: NDArray[np.int64]) -> Word:
        """The class names of values in shared memory, by the generic addresses of lanes."""
        where = self.bytes.index(address, size)
        if where is None:
            return self.fresh(lanes)
        found = self.names[where]
        return np.where(found.any(axis=1), mix_numbers(_BYTES, found.T), _NONE)

    def save(self, address: Word, size: int, numbers: Word, names: Word, slopes: Slopes | None = None) -> None:
        """Lanes store values, with ``slopes`` affine forms; what is outside of shared memory is passed over."""
        where = self.bytes.index(address, size)
        if where is None:
            return
        given = [mix_numbers(_BYTE, [numbers, names, np.array([j], np.uint64)]) for j in range(size)]
        for j, one in enumerate(given):
            self.names[where[:, j]] = np.where(names != _NONE, one, _NONE)
        if slopes is not None:
            words, firsts = np.unique(mix_numbers(_BYTES, given), return_index=True)
            self.slopes.update((w, slopes[:, k]) for w, k in zip(words.tolist(), firsts.tolist(), strict=True))

    def slopes_of(self, names: Word) -> tuple[Slopes, Mask] | None:
        """The slopes of words that are loaded, and which of them are affine forms; ``None`` if none is."""
        words, back = np.unique(names, return_inverse=True)
        found = [self.slopes.get(w) for w in words.tolist()]
        some = next((s for s in found if s is not None), None)
        if some is None:
            return None
        columns = np.stack([np.zeros_like(some) if s is None else s for s in found], axis=1)
        known = np.array([s is not None for s in found], np.bool_)
        return columns[:, back.reshape(-1)], known[back.reshape(-1)]
