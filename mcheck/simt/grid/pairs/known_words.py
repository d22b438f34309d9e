"""Words of global memory whose initial value the launch, or the module, gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.known_contents import Memory
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.memory_layout import MemoryLayout
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.simt.grid.pairs.reduction import NotReducible


@dataclass(frozen=True, slots=True)
class KnownWord:
    """A word of global memory that every cluster adds one to: ``offset`` bytes behind the beginning of a memory, whose
    object has a ``name``. ``first`` is its initial value.
    """

    address: int
    size: int
    memory: Memory
    name: str
    offset: int
    first: int

    @property
    def bytes(self) -> range:
        """Its addresses."""
        return range(self.address, self.address + self.size)


def known_word(places: MemoryLayout, address: int, size: int) -> KnownWord | None:
    """The word as a counter, if its initial value is given."""
    instance = places.memory.find(address) if GLOBAL_BASE <= address < SHARED_BASE else None
    memory = None if instance is None else places.memories.get(instance.base)
    first = places.initial_value(address, size)
    assumed = any(at <= address < at + len(places.contents[at][0]) for at in places.assumed)
    if instance is None or memory is None or first is None or address % size or assumed:
        return None
    return KnownWord(address, size, memory, instance.object.name, address - instance.base, first)


def check_initial_words(places: MemoryLayout, words: Iterable[KnownWord]) -> None:
    """Check that memories with these words begin with one value of them everywhere. Raises ``NotReducible``."""
    for base, size in {(word.address - word.offset, word.size) for word in words}:
        instance = places.memory.find(base)
        given, unknown = places.contents[base]
        whole = instance is not None and len(given) == instance.object.size and not any(unknown)
        if not whole or len({given[k : k + size] for k in range(0, len(given), size)}) != 1:
            raise NotReducible("words that clusters signal by begin with several values")


def with_value(launch: Launch, counter: KnownWord, value: int) -> Launch:
    """The launch with another initial value of the counter."""
    contents = launch.contents_of(counter.memory)
    return launch.with_contents(contents.holding(counter.offset, value.to_bytes(counter.size, "little")))


def without_contents(launch: Launch, written: Sequence[tuple[Memory, int]], counter: KnownWord | None) -> Launch:
    """The launch without what is said of the contents of these bytes, and of those behind them, but for the counter.
    Raises ``NotReducible`` if tensor maps lie there.
    """
    if any(buffer.maps and ("buffer", buffer.name) == memory for buffer in launch.buffers for memory, _ in written):
        raise NotReducible("tensor maps in memory are written")
    launch = launch.with_contents(*(launch.contents_of(memory).forgetting(low) for memory, low in written))
    return launch if counter is None else with_value(launch, counter, counter.first)
