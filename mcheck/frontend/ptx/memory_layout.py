"""The layout of a module's variables and a launch's buffers in the flat map of ``mcheck.ir.memory``.

The shared variables of a CTA lie in its window as in the hardware's, one after the other, the dynamic ones last; the
first bytes are reserved for the system. Parameters lie in one block of constant memory, of which only the tensor maps
are objects of the program; the address of a parameter in ``.param`` is its offset in the block. ``.local`` memory and
the parameters of ``.func``s are the lane's own: their addresses start at ``LOCAL_BASE`` in every lane.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from mcheck.base.errors import InputError, Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.known_contents import Contents, Memory
from mcheck.frontend.ptx.launch import Argument, Buffer, Launch, Map
from mcheck.frontend.ptx.module import (
    Function,
    Immediate,
    Module,
    Operand,
    Parameter,
    Special,
    Statement,
    Symbol,
    Variable,
    qualified_name,
)
from mcheck.frontend.ptx.module_copies import MARK, owner_of, written_name
from mcheck.frontend.ptx.problems import problem
from mcheck.frontend.ptx.taint import MISSING, UNKNOWN
from mcheck.ir.memory import (
    CELL,
    GLOBAL_BASE,
    SHARED_BASE,
    SHARED_WINDOW,
    TENSOR_MEMORY,
    TENSOR_OFFSET,
    TENSOR_SIZE,
    Cta,
    Instance,
    MemObject,
    MemoryMap,
    TensorMapSpec,
)
from mcheck.isa.kinds import CANCELS, COPIES_BY_ADDRESS, TMEM
from mcheck.semantics.tensor_map_values import MAP_SIZE, encode

SYSTEM_BYTES = 1024
"""The bytes at the beginning of a shared window that are reserved for the system."""
DYNAMIC_ALIGN = 1024
PARAM_BASE = GLOBAL_BASE
GAP = 1 << 16
UNKNOWN_SIZE = 1 << 33
"""The bytes that a buffer of unknown size takes in the map."""
LOCAL_BASE = 1 << 50
POINTER = 8
MAX_BYTES: Mapping[str, int] = {"shared": 227 << 10, "const": 64 << 10, "local": 512 << 10, "param": 512 << 10}
"""The largest variable of a kind that fits any target; parameters of a ``.func`` are a lane's own memory."""
MAX_LANE_BYTES = 1 << 28
"""Maximum bytes of lane-owned memory of all lanes together that can be followed."""
MAX_TRACKED_BYTES = 1 << 20
"""The largest variable whose initial contents are tracked; contents of larger ones are unknown."""
RESERVED = "reserved"
"""The system's part of shared memory, which cooperative groups use for tiles of several warps."""
RESERVED_OFFSETS: Mapping[str, int] = {
    "reserved_smem_offset_begin": 0, "reserved_smem_offset_0": 0, "reserved_smem_offset_1": 64,
    "reserved_smem_offset_end": SYSTEM_BYTES, "reserved_smem_offset_cap": SYSTEM_BYTES,
}  # fmt: skip
"""The values of the registers that describe it (chapter 10); after the last of its parts ``cooperative_groups`` expects
288 bytes.
"""
LAUNCH_CONTROL = "launch control"
"""The source object of clusterlaunchcontrol responses."""
UNKNOWN_GLOBAL = "elsewhere"
"""The object that stands in for unknown global addresses of copies."""
UNKNOWN_GLOBAL_SIZE = 1 << 32
GRID_WORKSPACE = "grid workspace"
"""The workspace that the driver gives a cooperative launch, zeroed: cooperative groups count arrivals at ``grid.sync``
there.
"""
WORKSPACE_SIZE = 64
WORKSPACE_HALVES = {"envreg1": 32, "envreg2": 0}
"""The registers with the upper and the lower half of its address (chapter 10 leaves them to the driver; read as
``cooperative_groups`` does).
"""
FUNCTION_BASE = 1 << 51
"""The address of function k is this plus k."""


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """The memory layout. ``symbols`` has the address of every module-level name and of those of functions as (function,
    name); that of a shared one is its offset in the window. ``buffers`` are the addresses of buffers by name,
    ``local_size`` the bytes of a lane's own memory.
    """

    memory: MemoryMap
    symbols: Mapping[tuple[str, str], int]
    shared: frozenset[tuple[str, str]]
    buffers: Mapping[str, int]
    shared_size: int
    local_size: int
    contents: Mapping[int, tuple[bytes, bytes]] = field(default_factory=dict)
    """Initial contents of memory outside the CTAs, by address, with the quality of each byte."""
    initialised: Mapping[int, str] = field(default_factory=dict)
    """By address, the variables that hold their initialisers, or zero, unless the host has changed them: those in
    global memory, and constants that the module gives no value.
    """
    memories: Mapping[int, Memory] = field(default_factory=dict)
    """By address, what launches and clusters share."""
    assumed: frozenset[int] = frozenset()
    """The addresses of words whose initial contents are not given, but assumed."""

    def initial_value(self, address: int, size: int) -> int | None:
        """The first value of a word outside the CTAs, if it is known."""
        for at, (data, quality) in self.contents.items():
            here = slice(address - at, address - at + size)
            if at <= address and len(data[here]) == size and not any(quality[here]):
                return int.from_bytes(data[here], "little")
        return None


def with_contents(places: MemoryLayout, words: Mapping[int, bytes]) -> MemoryLayout:
    """The same layout with assumed initial contents for some words of unknown contents, by address."""
    if not words:
        return places
    instances = []
    for i in places.memory.instances:
        inside = tuple((at - i.base, data) for at, data in words.items() if i.base <= at < i.base + i.object.size)
        instances.append(replace(i, object=replace(i.object, held=(*i.object.held, *inside))) if inside else i)
    contents = {**places.contents, **{at: (data, bytes(len(data))) for at, data in words.items()}}
    memory = replace(places.memory, instances=tuple(instances))
    return replace(places, memory=memory, contents=contents, assumed=places.assumed | words.keys())


@dataclass(slots=True)
class _Window:
    """The shared memory of the CTAs of a launch. ``size`` bytes of it are taken."""

    objects: list[tuple[MemObject, int]] = field(default_factory=list)
    size: int = SYSTEM_BYTES
    dynamic: list[tuple[tuple[str, str], Variable]] = field(default_factory=list)


@dataclass(slots=True)
class _Builder:
    """Allocates addresses."""

    objects: list[tuple[MemObject, int]] = field(default_factory=list)
    windows: dict[str, _Window] = field(default_factory=dict)
    """By the owner of the names of a launch (``owner_of``)."""
    symbols: dict[tuple[str, str], int] = field(default_factory=dict)
    shared: set[tuple[str, str]] = field(default_factory=set)
    next_global: int = GLOBAL_BASE + 2 * GAP  # what is before the first object is not taken for a parameter
    next_local: int = LOCAL_BASE
    given: Span | None = None
    """The location of what is being placed: a variable, or a parameter (in the launch if it is given there)."""
    contents: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    tables: dict[int, Variable] = field(default_factory=dict)
    """Variables with known contents, by address; their initialisers may name variables that get addresses later."""
    memories: dict[int, Memory] = field(default_factory=dict)
    changed: dict[int, Contents] = field(default_factory=dict)
    """By address, contents of which a launch says otherwise."""

    def variable(self, owner: str, name: str, item: Variable, launch: Launch) -> None:
        """Place a declared variable, for a launch."""
        key, self.given = (owner, name), item.span
        check_size(item, MAX_BYTES.get(item.space))
        if item.space == "shared":
            window = self.windows[owner_of(owner or name)]
            if item.size is None or item.linkage == "extern":
                window.dynamic.append((key, item))
                return
            at = _align_up(window.size, item.align)
            window.size = at + item.size
            self.symbols[key] = at
            self.shared.add(key)
            window.objects.append((_object(short_name(written_name(name)), "shared", item.size, item.align), at))
        elif item.space in ("local", "param"):
            at = _align_up(self.next_local, max(item.align, 8))
            self.next_local = at + (item.size or 0)
            self.symbols[key] = at
        else:
            size = item.size or 1
            at = self.reserve(size, item.align)
            space = "const" if item.space == "const" else "global"
            self.objects.append((_object(name, space, size, item.align, None), at))
            self.symbols[key] = at
            memory = "variable", qualified_name(written_name(owner), written_name(name))
            self.change(at, memory, launch)
            if space == "global":
                self.memories[at] = memory
            if item.is_told and size <= MAX_TRACKED_BYTES:
                initial = _initial_bytes(item)
                self.contents[at] = initial, bytes(len(initial))
                self.tables[at] = item

    def share(self, at: int, memory: Memory, launch: Launch) -> None:
        """Name what is placed at an address, as the launch does."""
        self.memories[at] = memory
        self.change(at, memory, launch)

    def change(self, at: int, memory: Memory, launch: Launch) -> None:
        """Note what the launch says of the contents of a memory."""
        if (contents := launch.contents_of(memory)) != Contents(memory):
            self.changed[at] = contents

    def reserve(self, size: int, align: int) -> int:
        """Allocate global memory."""
        at = _align_up(self.next_global, max(align, 256))
        self.next_global = at + size + GAP
        size = self.next_global - GLOBAL_BASE
        _check_total(self.given, "variables and buffers are", size, SHARED_BASE - GLOBAL_BASE)
        return at


def check_size(item: Variable | Parameter, most: int | None) -> None:
    """Raise an error for a variable that fits no memory."""
    if most is not None and item.size is not None and item.size > most:
        raise problem("PTX117", item.span, name=item.name, found=item.size, limit=f"at most {most} fit")


def _check_total(span: Span | None, what: str, size: int, most: int) -> None:
    if size > most:
        message = f"{what} larger than the memory that mcheck models"
        raise InputError(message, span, expected=f"less than {most:,} bytes in all")


def _align_up(value: int, align: int) -> int:
    return (value + align - 1) // align * align


def _object(
    name: str, space: str, size: int, align: int, initial: bytes | None = None, maps: tuple[TensorMapSpec, ...] = ()
) -> MemObject:
    return MemObject(
        name=name, space=space, elem="b8", elem_size=1, dims=(size,), align=align, size=size, init=initial,
        tensor_map=maps,
    )  # fmt: skip


_LENGTH = re.compile(r"(?<!\d)(?<!L[a-z])\d+")
_END = re.compile(r"E*(?:_\d|__\d+_)?")
"""What may follow the last part of a mangled name: ends of what encloses it, and its index in its function."""


def short_name(name: str) -> str:
    """The last part of a mangled C++ name, else the name. The arguments of a template may stand before or after it."""
    if not name.startswith("_Z"):
        return name
    for length in reversed(list(_LENGTH.finditer(name))):
        end = length.end() + int(length[0][:4])
        part = name[length.end() : end]
        if end <= len(name) and part and not part[0].isdigit() and _END.fullmatch(name, end):
            return part
    rest, last = name[2:].lstrip("ZNL"), ""
    while first := re.match(r"\d+", rest):
        end = first.end() + int(first[0][:4])
        last, rest = rest[first.end() : end], rest[end:]
    return last or name


def _initial_bytes(item: Variable) -> bytes:
    data = bytearray(item.size or 0)
    for offset, size, value in item.initial or ():
        if isinstance(value, Immediate):
            data[offset : offset + size] = (value.value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(data)


def _write_addresses(b: _Builder) -> None:
    """Write the addresses that initialisers name: tables of functions, pointers to variables."""
    for at, item in b.tables.items():
        named = [(offset, size, v) for offset, size, v in item.initial or () if isinstance(v, Symbol)]
        if not named:
            continue
        data, sure = bytearray(b.contents[at][0]), bytearray(len(b.contents[at][0]))
        for offset, size, value in named:
            place = b.symbols.get(("", value.name))
            if size == POINTER and place is not None and ("", value.name) not in b.shared:
                data[offset : offset + size] = ((place + value.offset) & (1 << 64) - 1).to_bytes(size, "little")
            else:
                sure[offset : offset + size] = bytes([UNKNOWN] * size)
        b.contents[at] = bytes(data), bytes(sure)
    for k, (held, at) in enumerate(b.objects):
        if held.space == "global" and at in b.tables and not any(b.contents[at][1]):
            b.objects[k] = replace(held, held=((0, b.contents[at][0]),)), at


def _change_contents(b: _Builder) -> None:
    """Give memory the contents that launches say it has."""
    for at, changed in b.changed.items():
        data, sure = changed.apply(*b.contents.pop(at, (b"", b"")))
        if all(sure) or changed.forgotten == 0:  # nothing of what the module says is left
            b.tables.pop(at, None)
        if not all(sure):
            b.contents[at] = data, sure
        held = tuple((part.start(), data[part.start() : part.end()]) for part in re.finditer(rb"\0+", sure))
        for k, (item, place) in enumerate(b.objects):
            if place == at:
                b.objects[k] = replace(item, init=None, held=held), at


def place_variables(
    module: Module, functions: Sequence[Function], launch: Launch, ctas: tuple[Cta, ...]
) -> MemoryLayout:
    """Allocate addresses for all variables that these functions can name, and for the buffers of the launch."""
    b = _Builder()
    owners = {owner_of(one.entry): one for one in launch.concurrent}
    b.windows = {owner: _Window() for owner in owners}
    for name, item in module.variables.items():
        if owner_of(name) in owners:
            b.variable("", name, item, owners[owner_of(name)])
    for function in functions:
        for name, item in function.variables.items():
            b.variable(function.name, name, item, owners[owner_of(function.name)])
        if not function.entry:
            for formal in (*function.returns, *function.parameters):
                at = _align_up(b.next_local, 16)
                b.next_local = at + (formal.size or 256)
                b.symbols[function.name, formal.name] = at
    for number, name in enumerate(module.functions):
        b.symbols["", name] = FUNCTION_BASE + number
    for alias, name in module.aliases.items():
        b.symbols["", alias] = b.symbols["", name]
    _write_addresses(b)
    if any(s.kind in CANCELS for f in functions for s in f.body):
        at = b.symbols["", LAUNCH_CONTROL] = b.reserve(16, 16)
        b.objects.append((_object(LAUNCH_CONTROL, "global", 16, 16), at))
    if any(_copies_global(s) for f in functions for s in f.body):
        at = b.symbols["", UNKNOWN_GLOBAL] = b.reserve(UNKNOWN_GLOBAL_SIZE, 16)
        b.objects.append((_object(UNKNOWN_GLOBAL, "global", UNKNOWN_GLOBAL_SIZE, 16), at))
    buffers: dict[str, int] = {}
    offset = 0
    for owner, one in owners.items():
        own = [f for f in functions if owner_of(f.name) == owner]
        entry = module.functions[one.entry]
        if any(_reads_workspace(o) for f in own for s in f.body for o in s.operands):
            at = b.symbols[owner, GRID_WORKSPACE] = b.reserve(WORKSPACE_SIZE, 256)
            name = _label(GRID_WORKSPACE, owner)
            b.objects.append((_object(name, "global", WORKSPACE_SIZE, 256, bytes(WORKSPACE_SIZE)), at))
            b.contents[at] = bytes(WORKSPACE_SIZE), bytes(WORKSPACE_SIZE)
            b.share(at, ("workspace", owner), one)
        window = b.windows[owner]
        _place_dynamic(b, window, one)
        if any(_reads_reserved(o) for f in own for s in f.body for o in s.operands):
            b.symbols["", RESERVED] = 0
            window.objects.append((_object(RESERVED, "shared", SYSTEM_BYTES, 1, bytes(SYSTEM_BYTES)), 0))
        _check_total(entry.span, "the shared variables of the module are", window.size, TENSOR_OFFSET)
        lanes = len(ctas) * prod(one.block)
        _check_total(entry.span, "the variables of the lanes are", lanes * (b.next_local - LOCAL_BASE), MAX_LANE_BYTES)
        offset = _place_arguments(b, buffers, entry, one, offset)
        if any(s.kind in TMEM for f in own for s in f.body):
            window.objects.append((_object(TENSOR_MEMORY, "tensor", TENSOR_SIZE, CELL), TENSOR_OFFSET))
    _change_contents(b)
    bases = {item.name: at for item, at in b.objects if not item.copies}
    instances = [Instance(item, at, bases[item.copies[0]] if item.copies else at) for item, at in b.objects]
    executed = [owner for owner, one in owners.items() for _ in range(len(one.executed_clusters) * prod(one.cluster))]
    for cta, owner in zip(ctas, executed, strict=True):
        base = SHARED_BASE + cta.number * SHARED_WINDOW
        instances += [Instance(item, base + at, base + at, cta) for item, at in b.windows[owner].objects]
    instances.sort(key=lambda i: i.base)
    fixed = {at for at, item in b.tables.items() if item.space == "const" and item.initial is not None}
    initialised = {at: short_name(item.name) for at, item in b.tables.items() if at not in fixed}
    return MemoryLayout(
        MemoryMap(tuple(instances)), b.symbols, frozenset(b.shared), buffers, max(w.size for w in b.windows.values()),
        b.next_local - LOCAL_BASE, b.contents, initialised, b.memories,
    )  # fmt: skip


def _copies_global(statement: Statement) -> bool:
    """Whether an instruction copies from or to global memory by address."""
    return statement.kind in COPIES_BY_ADDRESS and "global" in statement.opcode.spaces


def _reads_workspace(operand: Operand) -> bool:
    return isinstance(operand, Special) and operand.name in WORKSPACE_HALVES


def workspace_registers(places: MemoryLayout, entry: str) -> dict[str, int]:
    """The registers that address the workspace of a cooperative launch, with their values, if the kernel uses it."""
    at = places.symbols.get((owner_of(entry), GRID_WORKSPACE))
    return {} if at is None else {name: at >> shift & 0xFFFFFFFF for name, shift in WORKSPACE_HALVES.items()}


def _reads_reserved(operand: Operand) -> bool:
    return isinstance(operand, Special) and operand.name in RESERVED_OFFSETS


def reserved_registers(places: MemoryLayout) -> dict[str, int]:
    """The registers that describe the system's part of shared memory, with their values, if the kernel uses it."""
    return dict(RESERVED_OFFSETS) if ("", RESERVED) in places.symbols else {}


def _place_dynamic(b: _Builder, window: _Window, launch: Launch) -> None:
    """Place the dynamic shared variables, which all begin at one address."""
    if not window.dynamic:
        return
    align = max(DYNAMIC_ALIGN if not window.objects else 128, *(item.align for _, item in window.dynamic))
    at = _align_up(window.size, align)
    for key, _ in window.dynamic:
        b.symbols[key] = at
        b.shared.add(key)
    size = launch.shared
    if size:
        name = short_name(written_name(window.dynamic[0][0][1]))
        window.objects.append((_object(name, "shared", size, align), at))
    window.size = at + size


def _label(name: str, owner: str) -> str:
    """The name of an object of a launch (``owner_of``): with its GPU if it is not the first one."""
    return f"{name}{MARK}{owner}" if owner else name


def _place_arguments(b: _Builder, buffers: dict[str, int], entry: Function, launch: Launch, offset: int) -> int:
    """Place the parameters, one after the other in one block from ``offset`` on, and the buffers that they point to;
    returns the end of the block.
    """
    for formal, given in zip(entry.parameters, launch.arguments, strict=True):
        offset = _align_up(offset, max(formal.align, 1))
        at = PARAM_BASE + offset
        b.symbols[entry.name, formal.name] = at - PARAM_BASE
        offset += given.size
        b.given = given.span or formal.span
        b.contents[at] = _place_argument(b, buffers, launch, given, at)
    return offset


def _place_argument(
    b: _Builder, buffers: dict[str, int], launch: Launch, given: Argument, at: int
) -> tuple[bytes, bytes]:
    """The bytes of a parameter with their quality. A number of eight bytes that is not given may be a pointer: it
    becomes one to memory of its own, and everything that depends on it except an address is unknown.
    """
    data, sure = bytearray(given.data), bytearray([MISSING | UNKNOWN] * given.size)
    for start, end in given.known:
        sure[start:end] = bytes(end - start)
    if not given.is_given and given.size == POINTER:
        place = _place_buffer(b, buffers, launch, Buffer(given.name, None))
        b.memories.pop(place)  # nobody knows what lies there
        data[:] = place.to_bytes(POINTER, "little")
        sure[:] = bytes([MISSING] * POINTER)
    for where, what in given.places:
        match what:
            case Buffer():
                data[where : where + POINTER] = _place_pointer(b, buffers, launch, what)
                sure[where : where + POINTER] = bytes(POINTER)
            case Map():
                name = given.name if given.size == MAP_SIZE else f"{given.name}+{where}"
                contents = _place_maps(b, buffers, launch, (what,), name, "param", at + where)
                data[where : where + MAP_SIZE], sure[where : where + MAP_SIZE] = contents, bytes(MAP_SIZE)
    return bytes(data), bytes(sure)


def _place_buffer(b: _Builder, buffers: dict[str, int], launch: Launch, buffer: Buffer) -> int:
    """The address of a buffer, allocated on first use."""
    if buffer.name not in buffers and buffer.copies:
        for copy in buffer.copies:
            _place_buffer(b, buffers, launch, copy)
        size = max(buffer.size or 0, 1)
        at = buffers[buffer.name] = b.reserve(size, 512)
        names = tuple(copy.name for copy in buffer.copies)
        item = _object(buffer.name, "global", size, 256)
        b.objects.append((replace(item, alias_of=names[0], alias_proxy="generic", copies=names), at))
    elif buffer.name not in buffers:
        size = UNKNOWN_SIZE if buffer.size is None else max(buffer.size, 1)
        at = buffers[buffer.name] = b.reserve(size, 512)
        b.share(at, ("buffer", buffer.name), launch)
        if buffer.maps:
            contents = _place_maps(b, buffers, launch, buffer.maps, buffer.name, "global", at)
            b.contents[at] = contents, bytes(len(contents))
        else:
            initial = _buffer_contents(b, buffers, launch, buffer)
            whole = initial if 0 < len(initial) == size else None
            item = replace(_object(buffer.name, "global", size, 256, whole), gpus=buffer.gpus)
            if whole is None and initial:
                item = replace(item, held=((0, initial),))
            b.objects.append((item, at))
            if initial:
                b.contents[at] = initial, bytes(len(initial))
    return buffers[buffer.name]


def _place_pointer(b: _Builder, buffers: dict[str, int], launch: Launch, buffer: Buffer) -> bytes:
    """The bytes of a pointer into a buffer."""
    return (_place_buffer(b, buffers, launch, buffer) + buffer.offset).to_bytes(POINTER, "little")


def _buffer_contents(b: _Builder, buffers: dict[str, int], launch: Launch, buffer: Buffer) -> bytes:
    """What a buffer holds at first, with the addresses of the buffers that it points to."""
    data = bytearray(buffer.initial)
    for offset, target in buffer.pointers:
        data[offset : offset + POINTER] = _place_pointer(b, buffers, launch, target)
    return bytes(data)


def _place_maps(
    b: _Builder, buffers: dict[str, int], launch: Launch, given: Sequence[Map], name: str, space: str, at: int
) -> bytes:  # fmt: skip
    """Place tensor maps, one behind the other, and return their bytes."""
    specs = tuple(
        replace(item.spec, global_address=_place_buffer(b, buffers, launch, item.buffer) + item.buffer.offset)
        for item in given
    )
    b.objects.append((_object(name, space, MAP_SIZE * len(specs), 64, None, specs), at))
    return b"".join(encode(spec).to_bytes(MAP_SIZE, "little") for spec in specs)
