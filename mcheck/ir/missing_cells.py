"""Addresses that stand for cells of tensor memory that an instruction names and cannot access.

They lie behind the tensor memory in the window of its CTA, in no object, and keep which cells are meant.
"""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.ir.memory import CELL, SHARED_BASE, SHARED_WINDOW, TENSOR_LANES, TENSOR_OFFSET, TENSOR_SIZE

LANES = 256
COLUMNS = 2048
"""A lane or a column from here on counts as the last one."""
QUARTER = 32
"""The lanes that a warp can access."""
_ROW = COLUMNS * CELL
_REGION = LANES * _ROW
_FIRST = TENSOR_OFFSET + TENSOR_SIZE


@dataclass(frozen=True, slots=True)
class MissingCells:
    """Cells from ``column`` on of a ``lane``. ``barred``: those of a lane that the warp cannot access, allocated or
    not.
    """

    lane: int
    column: int
    barred: bool

    def address(self, cta: int) -> int:
        """The address that stands for them in the CTA of this number."""
        place = min(self.lane, LANES - 1) * _ROW + min(self.column, COLUMNS - 1) * CELL
        return SHARED_BASE + cta * SHARED_WINDOW + _FIRST + self.barred * _REGION + place

    def why(self, size: int) -> str:
        """Why an access to ``size`` bytes of them is none: allocation (9.7.16.7.1), lanes of a warp (9.7.16.8)."""
        last = self.column + size // CELL - 1
        beyond = "at or beyond " if self.column == COLUMNS - 1 or self.lane == LANES - 1 else ""
        columns = f"column {self.column}" if last <= self.column else f"columns {self.column} to {last}"
        if self.barred and self.lane < TENSOR_LANES:
            quarter, first = self.lane // QUARTER, self.lane // QUARTER * QUARTER
            lanes = f"lanes {first} to {first + QUARTER - 1}"
            return (
                f"{columns} in {lanes} of tensor memory: only a warp whose number is {quarter} modulo 4 accesses those"
            )
        cells = f"{beyond}{columns} in lane {self.lane} of tensor memory"
        if self.lane >= TENSOR_LANES:
            return f"{cells}: there are {TENSOR_LANES} lanes"
        return f"{cells}: not all of them are allocated" if last > self.column else f"{cells}: it is not allocated"


def missing_cells(address: int) -> MissingCells | None:
    """The cells that an address stands for; ``None`` if it is one of memory."""
    place = (address - SHARED_BASE) % SHARED_WINDOW - _FIRST
    if address < SHARED_BASE or not 0 <= place < 2 * _REGION:
        return None
    barred, rest = divmod(place, _REGION)
    return MissingCells(rest // _ROW, rest % _ROW // CELL, bool(barred))
