"""The site of an instruction: the objects and the CTAs of its program as its thread sees them (PTX ISA 9.0 5.1)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field

from mcheck.base.phrase import Case, Phrase, say
from mcheck.base.records import dataclass
from mcheck.effects.effect import Effect, Faults
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, SHARED_WINDOW, Cta, Instance, MemoryMap
from mcheck.ir.ops import Multimem
from mcheck.ir.program import Place, Program


class Objects:
    """The object instances of a program, by address."""

    __slots__ = ("bases", "instances")

    def __init__(self, memory: MemoryMap) -> None:
        self.instances = sorted(memory.instances, key=lambda i: i.base)
        self.bases = [i.base for i in self.instances]

    def at(self, address: int) -> Instance | None:
        """The instance that contains a byte."""
        k = bisect_right(self.bases, address) - 1
        if k < 0:
            return None
        instance = self.instances[k]
        return instance if address < instance.base + instance.object.size else None

    def nearest(self, address: int) -> Instance | None:
        """The instance whose bytes are nearest to one that is in none."""
        k = bisect_right(self.bases, address)
        beside = self.instances[max(k - 1, 0) : k + 1]
        return min(beside, key=lambda i: max(i.base - address, address - i.base - i.object.size), default=None)


NEAR = 4096
"""So many bytes beside an object may be meant for it, however small it is."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What all threads of a program have in common: its objects, its CTAs, whether it has clusters."""

    objects: Objects
    ctas: tuple[Cta, ...]
    clustered: bool
    effects: dict[tuple[int, int], tuple[object, Effect]] = field(default_factory=dict, compare=False, repr=False)
    """By thread and the identity of an operation with constant operands: the operation, and what it always does."""


def layout_of(program: Program) -> Layout:
    """The layout of a program; made once, for all its threads."""
    ctas = {t.place.cta for t in program.threads}
    return Layout(Objects(program.memory), tuple(sorted(ctas, key=lambda c: c.number)), program.clustered)


@dataclass(frozen=True, slots=True)
class Site:
    """A thread's place in a layout, with checks that add violated preconditions to ``Faults``."""

    layout: Layout
    place: Place

    @property
    def cta(self) -> Cta:
        """The executing CTA."""
        return self.place.cta

    def at(self, address: int) -> Instance | None:
        """The instance that contains a byte."""
        return self.layout.objects.at(address)

    def in_cluster(self, cta: Cta) -> bool:
        """Whether a CTA is in the executing thread's cluster."""
        return (cta.gpu, cta.cluster) == (self.cta.gpu, self.cta.cluster)

    @property
    def is_multi_cta(self) -> bool:
        """Whether the cluster has CTAs beside the executing one."""
        return any(self.in_cluster(cta) and cta != self.cta for cta in self.layout.ctas)

    def in_rank(self, address: int, rank: int) -> int | None:
        """The address at the same offset in the CTA of ``rank`` in this cluster, ``None`` if there is no such CTA."""
        for cta in self.layout.ctas:
            if cta.rank == rank and self.in_cluster(cta):
                return SHARED_BASE + cta.number * SHARED_WINDOW + (address - SHARED_BASE) % SHARED_WINDOW
        return None

    def rank_of(self, address: int) -> int:
        """The rank of the CTA whose shared memory an address is in."""
        number = (address - SHARED_BASE) // SHARED_WINDOW
        return next(cta.rank for cta in self.layout.ctas if cta.number == number)

    def no_rank(self, rank: int) -> Phrase:
        """The message if the cluster has no CTA of a rank (``in_rank`` returns ``None``)."""
        alone = "" if self.layout.clustered else ": no role gives a cluster, so every CTA is a cluster of its own"
        return say("the cluster has no CTA of rank {}{}{}", str(rank), alone, Case("no such rank"))

    # --- checks -------------------------------------------------------------------------------------------

    def locate(self, faults: Faults, address: int, size: int, space: str = "generic") -> Instance | None:
        """The instance in which ``size`` bytes lie; UB103 if there is none, UB108 if this GPU may not access it.
        ``space`` is the one that the instruction names.

        The ISA speaks of the state space. Ours is stricter: a range that runs into the neighbouring object leaves its
        own (6.4.1).
        """
        instance = self._find(faults, address, size, space)
        if instance is None:
            return None
        if instance.object.gpus is not None and self.cta.gpu not in instance.object.gpus:
            faults.add(
                "UB108", say("{} is not visible to GPU {}{}", instance.thing(), str(self.cta.gpu), Case("other GPU"))
            )
            return None
        if instance.object.copies:
            only = "a multimem address, which only multimem instructions access"
            faults.add("UB111", say("{} is {}", instance.thing(), only))
            return None
        return instance

    def locate_copy(self, faults: Faults, address: int, size: int, form: Multimem) -> Instance | None:
        """The instance of the copy in which ``size`` bytes lie that an instruction accesses by a multimem address;
        UB103 or UB111 if that is none. Which GPUs have access to the copy by its own address does not matter.
        """
        first = address - (form.distance or 0)
        instance = self._find(faults, first, size)
        if instance is None:
            return None
        if not instance.object.copies or form.distance is None:
            faults.add("UB111", say("{} is not a multimem address{}", instance.thing(), Case("plain address")))
            return None
        return self.at(address)

    def _find(self, faults: Faults, address: int, size: int, space: str = "generic") -> Instance | None:
        """The instance that has all of these bytes; UB103 if there is none."""
        instance = self.at(address)
        if instance is None or address + size > instance.base + instance.object.size:
            where = self._beside(address, space) if instance is None else _inside(instance, address)
            faults.add("UB103", say("an access of {} bytes {}", str(size), where))
            return None
        return instance

    def _beside(self, address: int, space: str) -> str | Phrase:
        """What an access in no object does: said by the nearest object, if that is near enough to be meant."""
        if space == "global" and SHARED_BASE <= address < SHARED_BASE + GLOBAL_BASE:  # widened: see below
            return f"is outside every object: its address is the number {address - SHARED_BASE:#x}"
        near = self.layout.objects.nearest(address)
        if near is None:
            return "is outside every object"
        size, behind = near.object.size, address - near.base - near.object.size
        if max(behind, near.base - address) > max(size, NEAR):
            return "is outside every object"
        if behind >= 0:
            where = f"{behind} bytes after the end" if behind else "at the end"
        else:
            where = f"{near.base - address} bytes before the beginning"
        return say("is outside every object: it begins {} of {}, which has {} bytes", where, near.thing(), str(size))

    def check_alignment(self, faults: Faults, address: int, alignment: int, what: str) -> None:
        """UB102 unless an address is a multiple of ``alignment`` (6.4.1; of bulk copies by their own sections)."""
        faults.require(
            alignment <= 1 or address % alignment == 0, "UB102", f"the {what} is not a multiple of {alignment} bytes"
        )

    def check_named_space(self, faults: Faults, instance: Instance, space: str) -> None:
        """UB108 unless an object is in the state space that a generic access names (5.1)."""
        wanted, _, window = space.partition("::")
        if space in ("generic", "local"):
            return
        actual, there = instance.object.space, instance.cta
        if actual != wanted:
            faults.add("UB108", say("{} is in .{}, not in .{}", instance.thing(), actual, space))
            return
        if there is not None and window != "cluster" and there != self.cta:
            faults.add("UB108", say("{} is in the shared memory of another CTA", instance.thing()))
        elif there is not None and not self.in_cluster(there):
            faults.add(
                "UB108", say("{} is in the shared memory of another cluster{}", instance.thing(), Case("other cluster"))
            )

    def check_object_space(self, faults: Faults, instance: Instance, space: str, what: str) -> None:
        """UB105 or UB108 unless the bytes of an asynchronous operation are where it says: global memory, the shared
        memory of the executing CTA, or that of its cluster.
        """
        there = instance.cta
        if space == "global":
            if instance.object.space not in ("global", "const", "param"):
                faults.add("UB108", say("the {} {} is not in .global", what, instance.thing()))
        elif there is None:
            faults.add("UB108", say("the {} {} is not in shared memory", what, instance.thing()))
        elif space == "shared::cta" and there != self.cta:
            own = "the shared memory of the executing CTA"
            faults.add("UB105", say("the {} {} is not in {}", what, instance.thing(), own))
        elif not self.in_cluster(there):
            faults.add("UB105", say("the {} {} is in another cluster", what, instance.thing()))

    def mbarrier_object(self, faults: Faults, address: int, *, own: bool) -> int | None:
        """The mbarrier object at an address: 8 aligned bytes of shared memory, of the own CTA where only that is
        allowed (9.7.13.15.3, 9.7.13.15.8). ``None`` if there can be none.
        """
        instance = self.locate(faults, address, 8)
        if instance is None:
            return None
        self.check_alignment(faults, address, 8, "address")
        there = instance.cta
        if instance.object.space != "shared" or there is None:
            faults.add("UB204", ("the mbarrier object is not in shared memory", Case("other space")))
            return None
        if own and there != self.cta:
            faults.add("UB204", "the mbarrier object is not in the shared memory of the executing CTA")
        elif not self.in_cluster(there):
            faults.add(
                "UB204", ("the mbarrier object is in the shared memory of another cluster", Case("other cluster"))
            )
        return address


def _inside(instance: Instance, address: int) -> Phrase:
    at = f"it begins at byte {address - instance.base} of its {instance.object.size}"
    return say("leaves object {}: {}", instance.thing(), at)


def widened(address: int) -> int:
    """Restore an address that went through a 32-bit register, where it is an offset into the shared windows."""
    return address + SHARED_BASE if 0 <= address < GLOBAL_BASE else address
