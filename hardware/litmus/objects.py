"""The global objects of a program on a chip: where the instances of each lie, and how a kernel gets at them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hardware.emit import CannotEmit
from hardware.litmus import settings, views
from hardware.litmus.views import Registers, View
from mcheck.ir import ops
from mcheck.ir.memory import MemObject
from mcheck.ir.program import Program

MAP = 128
"""Bytes of a tensor map."""


@dataclass(frozen=True, slots=True)
class GlobalObject:
    """A global object: ``stride`` bytes from instance to instance, its initial bytes, its tensor maps. With a ``proxy``
    it is how the object is seen through that: a texture over its memory, or a surface that lies elsewhere.
    """

    item: MemObject
    stride: int
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class Objects:
    """All of a program: ``numbers`` by name, ``views`` by object and proxy, both into ``all``.

    ``changes_maps``: the program changes tensor maps; ``fences_aliases``: it keeps its aliases apart by fences.
    """

    all: tuple[GlobalObject, ...]
    numbers: dict[str, int]
    views: dict[View, int]
    changes_maps: bool
    fences_aliases: bool

    def pointers(self, k: int, number: int, registers: Iterable[tuple[str, str]]) -> list[str]:
        """Sets registers to addresses in the object of instance ``%i``: their offsets, numbers or other registers."""
        at = settings.object_at(number)
        lines = [
            f"ld.param.u32 %m{k}, [A+{settings.at('mask')}];",
            f"ld.param.u32 %v{k}, [A+{at + 8}];",
            f"mul.lo.u32 %v{k}, %v{k}, %i{k};",
            f"and.b32 %v{k}, %v{k}, %m{k};",
            f"ld.param.u64 %g{k}, [A+{at}];",
            f"mad.wide.u32 %g{k}, %v{k}, {self.all[number].stride}, %g{k};",
        ]
        for offset, register in registers:
            if offset.startswith("%"):
                lines += [f"cvt.u64.u32 {register}, {offset};", f"add.u64 {register}, {register}, %g{k};"]
            else:
                lines.append(f"add.u64 {register}, %g{k}, {offset};")
        # A map that the host wrote is acquired before its first use.
        return lines + [
            f"fence.proxy.tensormap::generic.acquire.sys [%g{k}+{MAP * n}], {MAP};"
            for n in range(len(self.all[number].item.tensor_map))
        ]

    def texels(self, k: int, texels: Mapping[View, dict[int, Registers]]) -> list[str]:
        """Sets the registers of textures and surfaces."""
        lines = [f"ld.param.u32 %m{k}, [A+{settings.at('mask')}];"] if texels else []
        for view, words in texels.items():
            number = self.views[view]
            lines += views.coordinates(view, settings.object_at(number), self.all[number].stride, k, words)
        return lines

    def warm(
        self,
        k: int,
        firsts: Mapping[int, tuple[int | None, str]],
        texels: Mapping[View, dict[int, Registers]],
        *,
        read: bool,
    ) -> list[str]:
        """Early accesses to the objects that the settings name: to maps that change, and, to ``read``, to data; by
        object, an offset and the register with the address of its byte there.
        """

        def chosen(number: int) -> list[str]:
            return [f"and.b32 %n{k}, %m{k}, {1 << number};", f"setp.ne.u32 %p{k}, %n{k}, 0;"]

        lines = []
        for number, (offset, register) in firsts.items():
            if self.changes_maps and self.all[number].item.tensor_map and offset is not None and offset % MAP == 0:
                lines += [*chosen(number), f"@%p{k} prefetch.tensormap [{register}];"]
        early = {number: f"ld.global.u8 %v{k}, [{register}];" for number, (_, register) in firsts.items()}
        for view, words in texels.items():
            early[self.views[view]] = views.read(view.proxy, f"%v{k}", min(words.items())[1])
        if read and early:
            for number, load in early.items():
                lines += [*chosen(number), f"mov.u32 %v{k}, 0;", f"@%p{k} {load}", f"add.u32 %acc{k}, %acc{k}, %v{k};"]
            lines += [  # never true: the reads have to be done, not to be used
                f"setp.eq.u32 %p{k}, %acc{k}, 0x7fffffff;",
                f"ld.param.u64 %w{k}, [A+{settings.at('scratch')}];",
                f"@%p{k} st.global.u32 [%w{k}], %acc{k};",
                # A program that keeps its aliases apart has nothing to do with these reads.
                *(["fence.proxy.alias;"] if self.fences_aliases else []),
            ]
        return [f"ld.param.u32 %m{k}, [A+{settings.at('warm')}];", *lines] if lines else []


def objects_of(program: Program, apart: int = 4) -> Objects:
    """The objects of a program, whose instances lie at least so many bytes ``apart``; raises ``CannotEmit``."""
    stored = [
        GlobalObject(i.object, max(stride(i.object), apart))
        for i in program.memory.instances
        if i.cta is None and i.object.alias_proxy in (None, "generic")
    ]
    numbers = {o.item.name: k for k, o in enumerate(stored)}
    seen = views.views(program)
    through = (dataclasses.replace(stored[numbers[v.name]], proxy=v.proxy) for v in seen)
    executed = [ops.performed_operation(op) for t in program.threads for op in t.code]
    return Objects(
        (*stored, *through),
        numbers,
        {view: len(stored) + k for k, view in enumerate(seen)},
        any(isinstance(op, ops.TensormapReplace | ops.TensormapCopyFence) for op in executed),
        any(isinstance(op, ops.ProxyFence) and op.kind == "alias" for op in executed),
    )


def stride(item: MemObject) -> int:
    """The bytes from instance to instance of a global object."""
    if item.align > 256:
        raise CannotEmit(f"{item.name} is aligned to {item.align} bytes")
    step = max(item.align, 4)
    return (item.size + step - 1) // step * step
