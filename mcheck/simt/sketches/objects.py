"""The objects of a sketch: variables and buffers of the module, and its mbarriers as arrays named by their use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass
from mcheck.effects.site import Objects
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import Instance, TensorMapSpec
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.simt.traces.mbarrier_roles import Bar, find_uses, index_roles, operand_values

MBARRIER = 8
LARGE = 1 << 20
"""Buffers above this many bytes are declared only up to their last used byte."""
MOST_ALIGNED = 1024


@dataclass(slots=True)
class Declarations:
    """The declarations, and the names of addresses. ``bars``: by place, the array of mbarriers and the index."""

    program: Program
    objects: Objects
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    bars: dict[Bar, tuple[str, int]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    used_bytes: dict[int, int] = field(default_factory=dict)
    """By the base of a buffer, the bytes up to the last one that is accessed."""

    def instance(self, address: int) -> Instance:
        """The object at an address."""
        found = self.objects.at(address)
        if found is None:
            raise Unsupported(f"an access of {address:#x}, which is outside all objects")
        return found

    def nearest_instance(self, address: int) -> Instance:
        """The object at an address, or the last one before it."""
        found = self.objects.at(address)
        if found is not None:
            return found
        before = [i for i in self.program.memory.instances if i.base <= address]
        if not before:
            raise Unsupported(f"{address:#x} is outside all objects")
        return max(before, key=lambda i: i.base)

    def object_name(self, instance: Instance) -> str:
        """The name of an object, which is that of the module if it is a valid name."""
        item = instance.object
        key = item.space if item.space == "shared" else "global", item.name
        found = self.names.get(key)
        if found is None:
            plain = re.sub(r"\W", "_", item.name) or "memory"
            plain = plain if plain[0].isalpha() and not re.fullmatch(r"r\d+", plain) else f"v_{plain}"
            taken = set(self.names.values()) | set(self.counts)
            found = plain if plain not in taken else next(
                f"{plain}_{k}" for k in range(2, len(taken) + 3) if f"{plain}_{k}" not in taken
            )  # fmt: skip
            self.names[key] = found
        return found

    def declaration_lines(self) -> list[str]:
        """The lines of the declarations."""
        out: list[str] = []
        seen: set[str] = set()
        maps: list[str] = []
        touched = sorted(self.program.memory.instances, key=lambda i: i.base)
        for instance in touched:
            key = "shared" if instance.object.space == "shared" else "global", instance.object.name
            if key not in self.names or self.names[key] in seen:
                continue
            seen.add(self.names[key])
            if instance.object.tensor_map:
                maps.append(_map(self.names[key], instance.object.tensor_map[0], self._pointed))
                continue
            out.append(self._variable(instance, self.names[key]))
        for name, count in self.counts.items():
            out.append(f"  .shared .align 8 .b64 {name}[{count}];")
        return [*out, *maps]

    def _pointed(self, address: int) -> str:
        instance = self.objects.at(address)
        if instance is None or instance.base != address:
            raise Unsupported("a tensor map that points into the middle of a buffer")
        return self.object_name(instance)

    def _variable(self, instance: Instance, name: str) -> str:
        item = instance.object
        space = "shared" if item.space == "shared" else "global"
        align = min(MOST_ALIGNED, instance.base & -instance.base)
        size = item.size
        if space == "global" and size > LARGE:
            size = min(size, -(-self.used_bytes.get(instance.base, 16) // 16) * 16)
        return f"  .{space} .align {align} .b8 {name}[{max(size, 1)}];"


def declare_objects(program: Program) -> Declarations:
    """Declare the objects that a program uses; its mbarriers are identified by the operations on them."""
    out = Declarations(program, Objects(program.memory))
    _name_barriers(out, program.operations)
    for op in program.operations:
        for address, size in accessed_ranges(op):
            instance = out.objects.at(address)
            if instance is not None:
                out.used_bytes[instance.base] = max(
                    out.used_bytes.get(instance.base, 0), address + size - instance.base
                )
    for instance in program.memory.instances:
        for spec in instance.object.tensor_map:
            rows = sum((n - 1) * t for n, t in zip(spec.global_dim[1:], spec.global_stride, strict=False))
            end = rows + spec.global_dim[0] * 16
            at = out.objects.at(spec.global_address)
            if at is not None:
                out.used_bytes[at.base] = max(out.used_bytes.get(at.base, 0), min(end, at.object.size))
    return out


def accessed_ranges(op: Op) -> Iterator[tuple[int, int]]:
    """The (address, size) ranges that an operation accesses, except tensor copies and mbarrier objects."""
    inner = ops.performed_operation(op)
    match inner:
        case ops.Load() | ops.Store() | ops.Atomic() | ops.AsyncStore():
            several = inner.dsts if isinstance(inner, ops.Load) else inner.srcs
            count = 1 if isinstance(inner, ops.Atomic) else len(several)
            yield from ((at, type_size(inner.type) * count) for at in operand_values(inner.address))
        case ops.CpAsync(size=Const(size)):
            yield from ((at, size) for at in (*operand_values(inner.dst), *operand_values(inner.src)))
        case ops.BulkCopy(size=Const(size)):
            yield from ((at, size) for at in (*operand_values(inner.dst), *operand_values(inner.src)))
        case ops.Wgmma():
            for start, length in inner.reads:
                if isinstance(length, Const):
                    yield from ((at, length.value) for at in operand_values(start))


def _name_barriers(out: Declarations, code: Iterable[Op]) -> None:
    """Name arrays of mbarriers by role; none where the memory also holds data."""
    data = {
        (i.object.name, at - i.base, size)
        for op in code
        for at, size in accessed_ranges(op)
        if (i := out.objects.at(at)) is not None and i.object.space == "shared"
    }
    roles = {
        bar: use.role
        for bar, use in find_uses(out.objects, (t.code for t in out.program.threads)).items()
        if not any(n == bar[0] and at < bar[1] + MBARRIER and bar[1] < at + size for n, at, size in data)
    }
    out.bars = index_roles(roles)
    out.counts = dict(Counter(roles.values()))


def _map(name: str, spec: TensorMapSpec, pointed: object) -> str:
    assert callable(pointed)

    def listed(values: tuple[int, ...]) -> str:
        return "{" + ", ".join(map(str, values)) + "}"

    fields = [
        f"global_address = {pointed(spec.global_address)}", f"elemtype = {spec.elemtype}", f"rank = {spec.rank}",
        f"global_dim = {listed(spec.global_dim)}", f"global_stride = {listed(spec.global_stride)}",
    ]  # fmt: skip
    if spec.box_dim:
        fields.append(f"box_dim = {listed(spec.box_dim)}")
    fields.append(f"element_stride = {listed(spec.element_stride)}")
    for key in ("pixel_box_lower_corner", "pixel_box_upper_corner"):
        if getattr(spec, key):
            fields.append(f"{key} = {listed(getattr(spec, key))}")
    for key in ("channels_per_pixel", "pixels_per_column"):
        if getattr(spec, key) is not None:
            fields.append(f"{key} = {getattr(spec, key)}")
    fields += [
        f"interleave_layout = {spec.interleave_layout}", f"swizzle_mode = {spec.swizzle_mode}",
        f"swizzle_atomicity = {spec.swizzle_atomicity}", f"fill_mode = {spec.fill_mode}",
    ]  # fmt: skip
    return f"  .global .tensormap {name} = {{ {', '.join(fields)} }};"
