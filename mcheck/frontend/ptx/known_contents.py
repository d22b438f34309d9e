"""What a launch finds in a memory where that is not what the launch file, or the module, says."""

from __future__ import annotations

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.taint import UNKNOWN

Memory = tuple[str, str]
"""What launches, or clusters, share: ``("buffer", name)``, ``("variable", qualified name)``, or the workspace of a
cooperative launch, ``("workspace", owner)``.
"""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a memory: as said elsewhere up to the byte ``forgotten`` (``None``: all of them), unknown from
    there on, but for ``words``, which begin at these bytes and are in order.
    """

    memory: Memory
    forgotten: int | None = None
    words: tuple[tuple[int, bytes], ...] = ()

    def forgetting(self, first: int) -> Contents:
        """These contents, unknown from byte ``first`` on."""
        kept = tuple((at, data[: first - at]) for at, data in self.words if at < first)
        return replace(self, forgotten=first if self.forgotten is None else min(first, self.forgotten), words=kept)

    def holding(self, at: int, data: bytes) -> Contents:
        """These contents, with a word of known value from byte ``at`` on."""
        end = at + len(data)
        rest = [(k, word[: max(at - k, 0)]) for k, word in self.words]
        rest += [(max(k, end), word[max(end - k, 0) :]) for k, word in self.words]
        return replace(self, words=tuple(sorted([(at, data), *(one for one in rest if one[1])])))

    def apply(self, data: bytes, unknown: bytes) -> tuple[bytes, bytes]:
        """The bytes of the memory, and which are unknown, given those that are said elsewhere."""
        values, quality = bytearray(data[: self.forgotten]), bytearray(unknown[: self.forgotten])
        for at, word in self.words:
            end = at + len(word)
            values.extend(bytes(max(end - len(values), 0)))
            quality.extend(bytes([UNKNOWN]) * max(end - len(quality), 0))
            values[at:end], quality[at:end] = word, bytes(len(word))
        return bytes(values), bytes(quality)
