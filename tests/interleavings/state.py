"""What an interleaving is at: threads, memory, mbarriers, barriers, copies in flight. All of it can be hashed, and
nothing of it grows with the rounds of a loop, so that a loop which comes to the same again closes on itself.
"""

from __future__ import annotations

from typing import NamedTuple

from mcheck.ir.program import Place


class NotCovered(Exception):
    """The program has something that the interpreter does not know."""


class Unclear(Exception):
    """What comes next in this interleaving depends on what is not known: it is followed no further."""


class Misuse(Exception):
    """What comes next is undefined. ``codes``: each says what is wrong, and one of them has to be told."""

    def __init__(self, *codes: str) -> None:
        super().__init__(" or ".join(codes))
        self.codes = frozenset(codes)


class Token(NamedTuple):
    """A state operand: ``age`` is how many phases ago its arrive was (2: too many, or the object is gone); ``pending``
    arrivals there were before it, and ``partial`` if it was a ``.noComplete`` one.
    """

    object: int
    age: int
    pending: int
    partial: bool


Value = int | Token | None
"""``None`` is a value that nobody knows."""


class Mbarrier(NamedTuple):
    """A valid object (9.7.13.15). ``parity`` is that of the open phase, ``first`` if it is phase 0.

    By 9.7.13.15.4 a wait is to return true for a phase before somebody arrives in the next: ``seen`` if one has for the
    phase before, ``owed`` if none had when somebody arrived in this one, ``missed`` if a phase was over so. A wait that
    comes behind the arrival is taken for one in time.
    """

    expected: int
    pending: int
    tx: int
    parity: int
    first: bool
    seen: bool
    owed: bool = False
    missed: bool = False


NOWHERE = -1
"""The address of bytes that are filled in, of a source, or left out, of a destination."""
Ranges = tuple[tuple[int, int], ...]
"""Addresses and how many bytes there, in the order in which a copy goes over them."""


class Box(NamedTuple):
    """What a tensor copy takes of the tensor that its map says, which is read when the copy acts."""

    map: int
    coords: tuple[int, ...]
    stores: bool


class Copy(NamedTuple):
    """A copy in flight, or the reads of a ``wgmma``. The source may have fewer bytes than the ``target``: the rest is
    zero. ``held`` is what it has read already. Of ``mbarrier`` it takes as many bytes as it goes over.

    ``name`` is the least number that no other copy of its thread in flight had.
    """

    name: int
    text: str
    source: Ranges
    target: Ranges = ()
    reduce: str = ""
    """The operation by which each element of ``type`` comes together with what is there; empty for a copy."""
    type: str = ""
    mbarrier: int | None = None
    held: tuple[int | None, ...] | None = None
    box: Box | None = None
    place: Place | None = None
    """Of a reduction through the generic proxy, which is as strong as a thread's at the scope of the cluster."""

    @property
    def bytes(self) -> int:
        """How many it goes over."""
        return sum(size for _, size in self.target)


class Thread(NamedTuple):
    """Where a thread is. ``waits`` is the barrier at which it has arrived, or ``("spin",)`` in a loop without effect.

    ``plain``, ``bulk`` and ``wgmma`` are its groups of copies, the open one last; ``written`` what ``cp.async`` of the
    open group write; ``loose`` its copies that tell an mbarrier; ``signals`` the arrivals that are to follow copies, by
    name.
    ``arrived``: at the cluster barrier since its last wait, in a round that is open (1) or complete (2).
    """

    at: int
    registers: tuple[Value, ...]
    over: bool = False
    waits: tuple[object, ...] | None = None
    plain: tuple[tuple[Copy, ...], ...] = ((),)
    bulk: tuple[tuple[Copy, ...], ...] = ((),)
    wgmma: tuple[tuple[Copy, ...], ...] = ((),)
    written: tuple[tuple[int, int], ...] = ()
    loose: tuple[Copy, ...] = ()
    signals: tuple[tuple[int, frozenset[int]], ...] = ()
    arrived: int = 0

    @property
    def copies(self) -> tuple[Copy, ...]:
        """All that are in flight."""
        groups = (*self.plain, *self.bulk, *self.wgmma)
        return (*(c for group in groups for c in group), *self.loose)


class Round(NamedTuple):
    """A round of a barrier that is open: the ``count`` of threads that it is for (``None``: all), whether it reduces,
    the threads that have arrived by as many warps, and those that wait, with what they bring.
    """

    count: int | None
    reduces: bool
    arrived: int
    waiting: tuple[tuple[int, int], ...]


class State(NamedTuple):
    """Everything. ``objects`` by address and ``rounds`` by (CTA, number), both in order.

    ``loaded`` and ``stored`` are the bytes that threads have accessed by then, where it matters (``Machine.unfenced``).
    """

    threads: tuple[Thread, ...]
    memory: tuple[int | None, ...]
    objects: tuple[tuple[int, Mbarrier], ...] = ()
    rounds: tuple[tuple[tuple[int, int], Round], ...] = ()
    loaded: frozenset[int] = frozenset()
    stored: frozenset[int] = frozenset()

    def with_thread(self, number: int, thread: Thread) -> State:
        """The state in which a thread is elsewhere."""
        return self._replace(threads=(*self.threads[:number], thread, *self.threads[number + 1 :]))

    def object(self, address: int) -> Mbarrier | None:
        """The valid mbarrier at an address."""
        for place, found in self.objects:
            if place == address:
                return found
        return None

    def with_object(self, address: int, new: Mbarrier | None) -> State:
        """The state with another mbarrier at an address, or none."""
        others = [(place, o) for place, o in self.objects if place != address]
        if new is not None:
            others.append((address, new))
        return self._replace(objects=tuple(sorted(others)))


def within(scope: str | None, one: Place, two: Place) -> bool:
    """Whether a scope of the one includes the other (8.5)."""
    a, b = one.cta, two.cta
    match scope:
        case "cta":
            return a.number == b.number
        case "cluster":
            return (a.gpu, a.cluster) == (b.gpu, b.cluster)
        case "gpu":
            return a.gpu == b.gpu
    return True
