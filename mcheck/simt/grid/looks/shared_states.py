"""When warps of different clusters are in the same state, and go the same ways (``explored_ways``)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from hashlib import blake2b

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.simt.grid.looks.explored_ways import Explored
from mcheck.simt.grid.looks.function_ways import FunctionWays
from mcheck.simt.grid.looks.known_bits import Bits
from mcheck.simt.grid.looks.warp_operands import WarpOperands
from mcheck.simt.grid.looks.warp_states import Lanes, State


@dataclass(slots=True)
class SharedStates(WarpOperands):
    """A warp, beside what others have found."""

    explored: Explored
    """What others have found."""
    lanes: Lanes = field(init=False)
    """The lanes that are followed."""

    @property
    def ways(self) -> FunctionWays:
        """What is asked of the ways through the function."""
        return self.explored.of(self.unit)

    def _named(self, end: int, at: int, state: State) -> frozenset[int]:
        """The rows that are named on the ways from a branch to where they end, or hold something for each case."""
        live = self.ways.live[at]
        cases = (row for row, bits in state.registers.items() if bits.value.ndim > 1 and row in live)
        return self.ways.region(at, end).named.union(cases)

    def _shared_key(self, end: int, at: int, state: State, mask: Lanes, *, apart: bool) -> Hashable:
        """Equal for warps that go the same ways from a branch to where they end."""
        digest = blake2b(digest_size=32)
        for row in sorted(self._named(end, at, state) & self.ways.live[at]):
            bits = self._row(state, row)
            digest.update(repr((row, bits.value.shape)).encode())
            digest.update(bits.value[..., self.lanes].tobytes())
            digest.update(bits.unknown[..., self.lanes].tobytes())
            digest.update((self._uniform_row(state, row) & self.lanes).tobytes())
        digest.update(repr([(row, vote.key()) for row, vote in sorted(state.votes.items())]).encode())
        for operand in self.ways.region(at, end).fixed:
            try:
                bits = self._fixed(operand)
            except Unsupported:
                continue  # no way that has been followed reads it
            digest.update(bits.value.tobytes() + bits.unknown.tobytes())
        digest.update(self._elsewhere(end, at, state))
        seen = state.look, state.alive.tobytes(), state.acquired.tobytes()
        return type(self), self.unit.start, end, at, apart, mask.tobytes(), self.lanes.tobytes(), seen, digest.digest()

    def _fixed(self, operand: ptx.Operand) -> Bits:
        """What an operand that is no register holds, wherever that matters."""
        return self._at_first(operand)

    def _elsewhere(self, _end: int, _at: int, _state: State, /) -> bytes:
        """What else decides which ways a warp goes from a branch: nothing."""
        return b""
