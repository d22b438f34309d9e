"""Names of addresses in terms of the kernel, for findings: ``ready[2] (ready@0 + 0x10, stage 2 of 4)`` or, where its
variable holds other things, ``the full mbarrier at smem@0 + 0x50 (stage 2 of 4)``.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from mcheck.base.phrase import Stage, Thing
from mcheck.base.records import replace
from mcheck.effects.site import Objects
from mcheck.ir import ops
from mcheck.ir.memory import MBARRIER_BYTES, Instance, MemoryMap
from mcheck.ir.ops import Op
from mcheck.ir.program import Thread
from mcheck.simt.traces.mbarrier_roles import (
    OTHER,
    Bar,
    Use,
    find_rings,
    find_stages,
    find_uses,
    index_roles,
    operand_values,
)


class KernelTerms:
    """Names of the memory of an executed cluster, computed when the first finding needs one."""

    def __init__(self, memory: MemoryMap, threads: tuple[Thread, ...]) -> None:
        self._memory, self._threads = memory, threads

    def thing_at(self, address: int) -> Thing | None:
        """What is at an address, named after the mbarrier there; ``None`` outside all objects."""
        instance = self._objects.at(address)
        if instance is None:
            return None
        place, bar = _place(instance, address), _bar(instance, address)
        if bar not in self._names:
            return replace(place, stage=self._stages.get(bar), role=self._roles.get(bar, ""))
        role = self._roles.get(bar, "") if bar[0] in self._mixed else ""
        return Thing(self._names[bar], place.cta, place=str(place), stage=self._stages.get(bar), role=role)

    def slot(self, op: Op) -> Stage | None:
        """The stage of a ring that a copy fills, from the mbarrier on which it completes, if there is a ring."""
        signalled = operand_values(getattr(ops.performed_operation(op), "mbar", None))
        found = {self._stages.get(_bar(i, at)) if (i := self._objects.at(at)) is not None else None for at in signalled}
        return found.pop() if len(found) == 1 else None

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self._memory)

    @cached_property
    def _uses(self) -> dict[Bar, Use]:
        return find_uses(self._objects, (t.code for t in self._threads))

    @cached_property
    def _names(self) -> dict[Bar, str]:
        """The mbarriers by the names of their variables, where these hold nothing else."""
        held = Counter(name for name, _ in self._uses)
        sizes = {i.object.name: i.object.size for i in self._memory.instances}
        whole = {name for name, number in held.items() if sizes[name] == number * MBARRIER_BYTES}
        found = index_roles({bar: bar[0] for bar in self._uses if bar[0] in whole})
        return {bar: f"{name}[{k}]" if held[name] > 1 else name for bar, (name, k) in found.items()}

    @cached_property
    def _mixed(self) -> set[str]:
        """The variables that hold mbarriers of several roles."""
        kinds = Counter(name for name, _ in {(name, use.role) for (name, _), use in self._uses.items()})
        return {name for name, number in kinds.items() if number > 1}

    @cached_property
    def _roles(self) -> dict[Bar, str]:
        """The roles of the mbarriers, but not one that several rings have: it does not tell which is meant."""
        rings = Counter(self._uses[bars[0]].role for bars in find_rings(self._uses))
        roles = ((bar, use.role) for bar, use in self._uses.items())
        return {bar: role for bar, role in roles if role != OTHER and rings[role] == 1}

    @cached_property
    def _stages(self) -> dict[Bar, Stage]:
        return {bar: Stage(*found) for bar, found in find_stages(self._uses).items()}


def _bar(instance: Instance, address: int) -> Bar:
    return instance.object.name, address - instance.base


def _place(instance: Instance, address: int) -> Thing:
    offset = address - instance.base
    return instance.thing(f" + {offset:#x}" if offset else "")
