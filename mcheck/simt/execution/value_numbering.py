"""Value numbering of unknown values: names that are equal where the same was computed from the same data.

Compilers let several warps compute one tile and store it to one place, each the same values. To see that they are the
same needs no numbers: an unknown value gets a name instead, made of the instruction and the names that it reads, and
names move as numbers do. Values of one name are equal; those of two names may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from zlib import crc32

import numpy as np

from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.lane_arithmetic import Word, truncate, type_bits
from mcheck.frontend.ptx.module import Immediate, Register, Statement
from mcheck.isa.kinds import FRAGMENTS, Kind
from mcheck.simt.execution.lanes import WARP, Lanes, Mask

COMMUTATIVE = frozenset(("add", "mul", "min", "max", "fma", "mad", "and", "or", "xor"))
"""Instructions whose first two sources may be exchanged."""
WARP_WIDE = FRAGMENTS | {Kind.MATRIX_PRODUCT, Kind.WGMMA}
"""Instructions whose results in one lane depend on operands of the other lanes of the warp."""

_NONE = np.uint64(0)
_STEP, _A, _B = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def hash_number(value: Word) -> Word:
    """Hash a number (the finalizer of splitmix64)."""
    value = value + _STEP
    value = (value ^ value >> np.uint64(30)) * _A
    value = (value ^ value >> np.uint64(27)) * _B
    return value ^ value >> np.uint64(31)


def mix_numbers(first: int, words: Iterable[Word]) -> Word:
    """One name for several, in their order."""
    out = np.array([first], np.uint64)
    for word in words:
        out = hash_number(out ^ hash_number(word))
    return out


def number_warp(words: Sequence[Word], mask: Mask) -> Word:
    """In each lane, a name for the operands of all lanes of its warp, and for the lane's position in the warp."""
    place = np.arange(len(mask)) % WARP
    here = np.where(mask, mix_numbers(1, [*words, place.astype(np.uint64)]), np.uint64(0))
    whole = np.repeat(here.reshape(-1, WARP).sum(axis=1, dtype=np.uint64), WARP)
    return mix_numbers(2, [whole, place.astype(np.uint64)])


def number_contents(place: int, size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Fresh names for bytes that something writes of which only the place is known."""
    words = hash_number(np.arange(place, place + (size + 7) // 8, dtype=np.uint64))
    return words.view(np.uint8)[:size]


def _room(register: Register) -> int:
    """The bits of a name; one bit of a predicate would be too few."""
    return 64 if register.type == "pred" else type_bits(register.type) or 64


def result_namer(
    lanes: Lanes, rows: Callable[[Iterable[Register]], list[int]], statement: Statement
) -> Callable[[Mask], None]:
    """A function that names the results of an instruction with opaque meaning."""
    kind, opcode = statement.kind, crc32(statement.opcode.text.encode())
    sources, targets = rows(statement.uses), rows(statement.defs)
    sizes = [_room(r) for r in statement.defs]
    values, known = lanes.values, lanes.quality
    whole, swaps = kind in WARP_WIDE, statement.opcode.name in COMMUTATIVE and len(sources) > 1
    constants = crc32(repr([o for o in statement.operands if not isinstance(o, Register)]).encode())

    scale = statement.operands[3] if kind is Kind.WGMMA else None  # of 0: the accumulators are not read (9.7.15.5.2)
    added = len(targets) if scale is not None else 0
    if isinstance(scale, Immediate) and scale.value == 0:
        sources, added = sources[added:], 0
    scaled = rows([scale])[0] if isinstance(scale, Register) else None

    def run(mask: Mask) -> None:
        words = [values[row] for row in sources]
        qualities = [known[row] for row in sources]
        if scaled is not None:
            read = (values[scaled] != 0) | (known[scaled] != 0)
            for k in range(added):
                words[k], qualities[k] = np.where(read, words[k], _NONE), np.where(read, qualities[k], np.uint8(0))
        if swaps:
            words[:2] = np.minimum(words[0], words[1]), np.maximum(words[0], words[1])
        sure = np.bitwise_or.reduce([np.zeros(len(mask), np.uint8), *qualities])
        if whole:
            lost = (sure & ~np.uint8(taint.UNKNOWN)) != 0
            sure = np.repeat((lost & mask).reshape(-1, WARP).any(axis=1), WARP) * np.uint8(taint.NAMELESS)
            words = [number_warp(words, mask)]
        base = mix_numbers(opcode ^ constants << 32, words)
        for k, (row, size) in enumerate(zip(targets, sizes, strict=True)):
            np.copyto(values[row], truncate(hash_number(base + np.uint64(k)), size), where=mask)
            np.copyto(known[row], sure | np.uint8(taint.UNKNOWN), where=mask)

    return run
