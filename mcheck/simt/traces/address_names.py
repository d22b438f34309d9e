"""Names of addresses in terms of the kernel, for findings: ``full[2] (smem@0 + 0x50, stage 2 of 4)``."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from mcheck.effects.site import Objects
from mcheck.ir import ops
from mcheck.ir.memory import MBARRIER_BYTES, Instance, MemoryMap
from mcheck.ir.ops import Op
from mcheck.ir.program import Thread
from mcheck.simt.traces.mbarrier_roles import Bar, Use, find_stages, find_uses, index_roles, operand_values


class KernelTerms:
    """Names of the memory of an executed cluster, computed when the first finding needs one."""

    def __init__(self, memory: MemoryMap, threads: tuple[Thread, ...]) -> None:
        self._memory, self._threads = memory, threads

    def label(self, address: int) -> str | None:
        """The name of an address, after the mbarrier there; ``None`` outside all objects."""
        instance = self._objects.at(address)
        if instance is None:
            return None
        place, bar = _place(instance, address), _bar(instance, address)
        if bar not in self._names:
            return place
        where = ", ".join(filter(None, (place, self._stage(bar))))
        return f"{self._names[bar]} ({where})"

    def slot(self, op: Op) -> str:
        """The stage of a ring that a copy fills, from the mbarrier on which it completes; empty if there is no ring."""
        signalled = operand_values(getattr(ops.performed_operation(op), "mbar", None))
        said = {self._stage(_bar(i, at)) if (i := self._objects.at(at)) is not None else "" for at in signalled}
        return said.pop() if len(said) == 1 else ""

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self._memory)

    @cached_property
    def _uses(self) -> dict[Bar, Use]:
        return find_uses(self._objects, (t.code for t in self._threads))

    @cached_property
    def _names(self) -> dict[Bar, str]:
        """The mbarriers by the names of their variables, or by their roles if a variable holds other things too."""
        held = Counter(name for name, _ in self._uses)
        kinds = {(name, use.role) for (name, _), use in self._uses.items()}
        mixed = {name for name, number in Counter(name for name, _ in kinds).items() if number > 1}
        whole = {
            i.object.name
            for i in self._memory.instances
            if i.object.name not in mixed and i.object.size == held[i.object.name] * MBARRIER_BYTES
        }
        names = {bar: bar[0] if bar[0] in whole else use.role for bar, use in self._uses.items()}
        counts = Counter(names.values())
        found = index_roles(names)
        return {bar: f"{name}[{k}]" if counts[name] > 1 else name for bar, (name, k) in found.items()}

    @cached_property
    def _stages(self) -> dict[Bar, tuple[int, int]]:
        return find_stages(self._uses)

    def _stage(self, bar: Bar) -> str:
        found = self._stages.get(bar)
        return f"stage {found[0]} of {found[1]}" if found is not None else ""


def _bar(instance: Instance, address: int) -> Bar:
    return instance.object.name, address - instance.base


def _place(instance: Instance, address: int) -> str:
    offset = address - instance.base
    return f"{instance.label} + {offset:#x}" if offset else instance.label
