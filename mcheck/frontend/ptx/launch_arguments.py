"""Reader of the parameters of a launch: numbers, bytes, pointers to buffers, tensor maps, blocks of all of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from mcheck.base.errors import InputError
from mcheck.base.records import replace
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.tensormaps import CHOICES, FIELDS, LISTS, MapFields, check_fields
from mcheck.frontend.ptx.json_positions import Node
from mcheck.frontend.ptx.launch import AnyNumber, Argument, Buffer, Map
from mcheck.frontend.ptx.memory_layout import check_size
from mcheck.frontend.ptx.module import Function, Parameter, Signature
from mcheck.frontend.ptx.source_signatures import describe_parameter, shortest_name

POINTER: Final = 8
MAP_BYTES: Final = 128
MAX_BYTES: Final = 1 << 48
MAX_PARAMETER_BYTES: Final = 32_764
"""Maximum bytes of all parameters of a kernel."""
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def read_arguments(
    entry: Function,
    given: Mapping[str, Node],
    declared: Mapping[str, Buffer] | None = None,
    signature: Signature | None = None,
) -> tuple[Argument, ...]:
    """The value of each parameter of ``entry``, by name or by index; parameters that are not given are unknown.

    They may name buffers that the file of several launches has ``declared``; ``None`` for a file of one. ``signature``
    is the entry in its source.
    """
    named: dict[str, Node] = {}
    for key, node in given.items():
        name = _name(entry, key, node, signature)
        if name in named:
            node.fail_at_key("PTX111", name=name)
        named[name] = node
    return _Reader(named, declared, signature).all(entry)


def _name(entry: Function, key: str, node: Node, signature: Signature | None) -> str:
    names = [parameter.name for parameter in entry.parameters]
    if key in names:
        return key
    number = key.removeprefix(f"{entry.name}_param_")  # the name that nvcc gives it, where it has its own again
    if number.isascii() and number.isdigit() and len(number) < 6 and int(number) < len(names):
        return names[int(number)]
    sources = [] if signature is None else [parameter.name for parameter in signature.parameters]
    if key in sources:
        return names[sources.index(key)]
    listed = ", ".join(describe_parameter(entry, k, signature) for k in range(len(names))) if names else "none"
    hint = suggest(key, sources or names)
    if not hint and not sources and any(f"{entry.name}_param_0" == name for name in names):
        hint = "--param 0=VALUE gives the first one; a module compiled with -lineinfo, its source beside it, has names"
    return node.fail_at_key(
        "PTX110", entry=shortest_name(entry.name, ()), name=key, expected=f"one of its parameters: {listed}", hint=hint
    )


class _Reader:
    """Reader of all parameters, which may refer to one another: a tensor map to the buffer that it describes."""

    def __init__(
        self, given: Mapping[str, Node], declared: Mapping[str, Buffer] | None, signature: Signature | None
    ) -> None:
        self._signature = signature
        self._given = given
        self._declared = declared
        self._buffers: dict[str, Buffer] = {}

    def all(self, entry: Function) -> tuple[Argument, ...]:
        for parameter in entry.parameters:
            check_size(parameter, MAX_PARAMETER_BYTES)
        sizes = {parameter.name: parameter.size or 0 for parameter in entry.parameters}
        for name, node in self._given.items():
            value = node.value
            if isinstance(value, dict) and "buffer" in value and sizes[name] == POINTER:
                self._buffers[name] = self._buffer(node, name)
        self._entry = entry
        return tuple(self._argument(parameter) for parameter in entry.parameters)

    def _argument(self, parameter: Parameter) -> Argument:
        name, size = parameter.name, parameter.size or 0
        node = self._given.get(name)
        if node is None:
            return Argument(name, size, bytes(size))
        value = node.value
        if value == "any":
            return Argument(name, size, bytes(size), places=((0, AnyNumber()),), span=node.span)
        if isinstance(value, bool | int | float):
            data = _encode_number(node, parameter)
            return Argument(name, size, data, ((0, size),), span=node.span)
        if not isinstance(value, dict):
            node.fail("PTX103", what="value of a parameter", expected=_EXPECTED)
        _check_keys(node, ("hex", "at", "buffer", "offset", "init", "tensormap", "tensormaps"))
        if not value.keys().isdisjoint(("buffer", "tensormap", "tensormaps")):
            place = self._place(node, name, name, 0, size)
            return Argument(name, size, bytes(size), places=place, span=node.span)
        if "hex" not in value and "at" not in value:
            node.fail("PTX103", what="value of a parameter", expected=_EXPECTED)
        return self._block(node, parameter)

    def _block(self, node: Node, parameter: Parameter) -> Argument:
        """Read ``{"hex": …, "at": {"64": {"buffer": null}}}``."""
        name, size = parameter.name, parameter.size or 0
        data = bytearray(size)
        known: list[tuple[int, int]] = []
        places: list[tuple[int, Buffer | Map | AnyNumber]] = []
        if "hex" in node.value:
            start = _read_hex(node.child("hex"))
            if len(start) > size or (len(start) < size and not parameter.shape):
                reason = f"it has {size} bytes, not {len(start)}"
                node.child("hex").fail("PTX112", name=name, reason=reason)
            data[: len(start)] = start
            known = [(0, len(start))] if start else []
        if "at" in node.value:
            if not isinstance(node.value["at"], dict):
                node.child("at").fail("PTX103", what="object", expected='{"64": {"buffer": null}}')
            for key, item in node.child("at").items():
                offset = _read_offset(item, key, size, name)
                _check_keys(item, ("buffer", "offset", "init", "tensormap", "tensormaps", "hex"))
                if "hex" in item.value:
                    part = _read_hex(item.child("hex"))
                    _check_fits(item, name, offset, len(part), size)
                    data[offset : offset + len(part)] = part
                    known = [*_subtract_range(known, offset, len(part)), (offset, offset + len(part))]
                else:
                    found = self._place(item, f"{name}+{offset}", name, offset, size)
                    wide = MAP_BYTES if found and isinstance(found[0][1], Map) else POINTER
                    known = _subtract_range(known, offset, wide)
                    places += found
        places.sort(key=lambda place: place[0])
        return Argument(name, size, bytes(data), tuple(sorted(known)), tuple(places), span=node.span)

    # --- pointers and maps ----------------------------------------------------------------------------------------

    def _place(
        self, node: Node, name: str, parameter: str, offset: int, size: int
    ) -> tuple[tuple[int, Buffer | Map], ...]:
        """The pointer or the tensor map at ``offset``; nothing for ``{"tensormap": {}}``, an unknown map."""
        if "buffer" in node.value:
            _check_fits(node, parameter, offset, POINTER, size)
            found = self._buffers.get(name) or self._buffer(node, name)
            self._buffers[name] = found
            return ((offset, found),)
        if "tensormaps" in node.value:
            _check_keys(node, ("tensormaps",))
            _check_fits(node, parameter, offset, POINTER, size)
            return ((offset, self._map_array(node.child("tensormaps"), name)),)
        if "tensormap" not in node.value:
            node.fail("PTX103", what="parameter", expected=_EXPECTED)
        _check_keys(node, ("tensormap",))
        made = self._map(node.child("tensormap"), name)
        if made is None:
            return ()
        if size - offset == POINTER:  # a pointer to a map in global memory
            return ((offset, Buffer(name, MAP_BYTES, maps=(made,))),)
        _check_fits(node, parameter, offset, MAP_BYTES, size)
        return ((offset, made),)

    def _buffer(self, node: Node, name: str) -> Buffer:
        """Read ``{"buffer": 64, "init": {"hex": "…"}}``; ``{"buffer": null}`` is of unknown size, ``{"buffer": "x",
        "offset": 16}`` points into one that the file declares.
        """
        _check_keys(node, ("buffer", "offset", "init"))
        if isinstance(node.value["buffer"], str):
            return declared_pointer(node, self._declared)
        if "offset" in node.value:
            hint = "a buffer of this parameter alone begins where the pointer points"
            node.child("offset").fail_at_key("PTX104", name="offset", expected="the name of a buffer", hint=hint)
        size = read_size(node.child("buffer"))
        initial, pointers = read_initial(node, name, size, self._buffer)
        return Buffer(name, size, initial, pointers=pointers)

    def _map_array(self, node: Node, name: str) -> Buffer:
        """Read ``{"tensormaps": [{…}, {…}]}``: a pointer to maps that lie one behind the other."""
        if not isinstance(node.value, list) or not node.value:
            node.fail("PTX103", what="list", expected="tensor maps, at least one")
        made = [self._map(node.child(k), f"{name}[{k}]") for k in range(len(node.value))]
        if None in made:
            node.fail("PTX103", what="list", expected="tensor maps with all their fields")
        return Buffer(name, MAP_BYTES * len(made), maps=tuple(m for m in made if m is not None))

    def _map(self, node: Node, name: str) -> Map | None:
        if not isinstance(node.value, dict):
            node.fail("PTX103", what="tensor map", expected="an object with the fields of tensormap.replace")
        if not node.value:
            return None
        fields = MapFields(node.span)
        for key, item in node.items():
            if key not in FIELDS:
                hint = suggest(key, FIELDS)
                expected = "a field name of tensormap.replace"
                raise problem("LIT033", item.key_span, found=f"'{key}'", expected=expected, hint=hint)
            fields.spans[key] = item.span
            _set_map_field(fields, key, item)
        buffer = self._described(node.child("global_address"), name) if "global_address" in node.value else None
        check_fields(fields)
        assert buffer is not None
        return Map(fields.spec(0), buffer)

    def _described(self, node: Node, name: str) -> Buffer:
        """The buffer of a ``global_address``: that of a parameter, or one of its own."""
        if isinstance(node.value, dict):
            if "buffer" not in node.value:
                node.fail("PTX103", what="buffer", expected='the name of a buffer parameter, or {"buffer": bytes}')
            return self._buffer(node, f"{name}.global_address")
        if node.value is None:
            return Buffer(f"{name}.global_address", None)
        wanted = str(node.value)
        known = [parameter.name for parameter in self._entry.parameters]
        if self._signature is not None and wanted not in known:
            sources = [parameter.name for parameter in self._signature.parameters]
            wanted = known[sources.index(wanted)] if wanted in sources else wanted
        if (
            wanted not in known
            and wanted.isascii()
            and wanted.isdigit()
            and len(wanted) < 6
            and int(wanted) < len(known)
        ):
            wanted = known[int(wanted)]
        if wanted not in self._buffers and self._declared is not None and wanted in self._declared:
            return self._declared[wanted]
        if wanted not in self._buffers:
            hint = suggest(wanted, (*self._buffers, *(self._declared or ())))
            expected = 'the name of a parameter that is given as {"buffer": bytes}, or such an object'
            node.fail("PTX114", name=wanted, expected=expected, hint=hint)
        return self._buffers[wanted]


def declared_pointer(node: Node, declared: Mapping[str, Buffer] | None) -> Buffer:
    """Read ``{"buffer": "x", "offset": 16}``: a pointer into a buffer that the file declares."""
    named = node.child("buffer")
    if declared is None:
        hint = 'buffers have names in a file of several launches: {"launches": [...], "buffers": {...}}'
        named.fail("PTX103", what="size of a buffer", expected="a number of bytes, or null", hint=hint)
    if named.value not in declared:
        expected = f"one of {', '.join(declared)}" if declared else "a buffer that the file declares under buffers"
        named.fail("PTX114", name=named.value, expected=expected, hint=suggest(named.value, declared))
    if "init" in node.value:
        hint = f"write it where {named.value} is declared"
        node.child("init").fail_at_key("PTX104", name="init", expected="nothing beside the name", hint=hint)
    found = declared[named.value]
    if "offset" not in node.value:
        return found
    at = node.child("offset")
    most = MAX_BYTES if found.size is None else found.size
    if not isinstance(at.value, int) or isinstance(at.value, bool) or not 0 <= at.value <= most:
        at.fail("PTX103", what="offset", expected=f"a number of bytes up to {most}, the size of {named.value}")
    return replace(found, offset=at.value)


def read_size(node: Node) -> int | None:
    """The bytes of a buffer; ``None`` if they are unknown."""
    size = node.value
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MAX_BYTES):
        node.fail("PTX103", what="size of a buffer", expected="a number of bytes, or null")
    return None if size is None else int(size)


def read_variable(node: Node, size: int | None) -> bytes:
    """Read ``{"init": {"hex": "…"}}``: the first bytes of a variable of ``size`` bytes, ``None`` if that is unknown."""
    _check_keys(node, ("init",))
    init = node.child("init") if "init" in node.value else node
    if init is node or not isinstance(init.value, dict) or "hex" not in init.value:
        init.fail("PTX103", what="content of a variable", expected=f'{{"init": {_CONTENT.partition(",")[0]}}}')
    _check_keys(init, ("hex",))
    given = _read_hex(init.child("hex"))
    if size is not None and len(given) > size:
        init.fail(
            "PTX103", what="content of a variable", expected=f"at most {size} bytes, of which it has {len(given)}"
        )
    return given


def read_initial(
    node: Node, name: str, size: int | None, pointer: Callable[[Node, str], Buffer]
) -> tuple[bytes, tuple[tuple[int, Buffer], ...]]:  # fmt: skip
    """The first contents of a buffer of ``size`` bytes, if it gives any, and the pointers among them, which
    ``pointer`` reads.
    """
    if "init" not in node.value:
        return b"", ()
    init = node.child("init")
    if not isinstance(init.value, dict):
        init.fail("PTX103", what="content of a buffer", expected=_CONTENT)
    _check_keys(init, ("hex", "at"))
    if "hex" not in init.value:
        init.fail("PTX103", what="content of a buffer", expected=_CONTENT)
    initial = _read_hex(init.child("hex"))
    if size is not None and len(initial) > size:
        init.fail("PTX112", name=name, reason=f"the buffer has {size} bytes, init gives {len(initial)}")
    pointers: list[tuple[int, Buffer]] = []
    if "at" in init.value:
        if not isinstance(init.value["at"], dict):
            init.child("at").fail("PTX103", what="object", expected='{"64": {"buffer": null}}')
        for key, item in init.child("at").items():
            offset = _read_offset(item, key, len(initial), name)
            _check_fits(item, name, offset, POINTER, len(initial))
            if not isinstance(item.value, dict) or "buffer" not in item.value:
                item.fail("PTX103", what="pointer", expected='such as {"buffer": 4096}')
            pointers.append((offset, pointer(item, f"{name}+{offset}")))
    pointers.sort(key=lambda found: found[0])
    for (one, _), (two, _) in pairwise(pointers):
        if two < one + POINTER:
            init.fail("PTX112", name=name, reason=f"the pointers at {one} and {two} overlap")
    return initial, tuple(pointers)


_CONTENT = '{"hex": "…"}, two digits for each byte: {"hex": "01000000"} is the 32-bit number 1'
_EXPECTED = 'a number, {"hex": "…"}, {"buffer": bytes}, {"tensormap": {…}}, or "any"'


def _check_keys(node: Node, keys: tuple[str, ...]) -> None:
    """Raise an error unless the value is an object with no other members than these."""
    if not isinstance(node.value, dict):
        node.fail("PTX103", what="object", expected=f"an object with {' or '.join(keys)}")
    for key, item in node.items():
        if key not in keys:
            sized = key in ("bytes", "size") and "buffer" in keys
            hint = "memory of so many bytes is given as buffer" if sized else suggest(key, keys)
            item.fail_at_key("PTX104", name=key, expected=f"one of {', '.join(keys)}", hint=hint)


def _read_hex(node: Node) -> bytes:
    value = node.value
    if isinstance(value, str):
        try:
            return bytes.fromhex(value.removeprefix("0x"))
        except ValueError:
            pass
    return node.fail("PTX113", expected="two hexadecimal digits for each byte, the first byte first")


def _read_offset(node: Node, key: str, size: int, name: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 7):
        node.fail_at_key("PTX112", name=name, reason=f"'{key}' is not an offset", expected="a number of bytes")
    if int(key) >= size:
        node.fail_at_key("PTX112", name=name, reason=f"it has {size} bytes")
    return int(key)


def _check_fits(node: Node, name: str, offset: int, wide: int, size: int) -> None:
    if offset + wide > size:
        node.fail("PTX112", name=name, reason=f"it needs {wide} bytes at offset {offset}, the parameter has {size}")


def _subtract_range(known: list[tuple[int, int]], offset: int, wide: int) -> list[tuple[int, int]]:
    """The ranges without bytes that are overwritten."""
    found = []
    for start, end in known:
        found += [(start, min(end, offset)), (max(start, offset + wide), end)]
    return [(start, end) for start, end in found if start < end]


def _encode_number(node: Node, parameter: Parameter) -> bytes:
    """The bytes of a number: of its two's complement, or of a float where the number or the parameter is one."""
    size, value = parameter.size or 0, node.value
    if parameter.shape:
        expected = '{"hex": "…"}, with "at" for what it points to'
        node.fail("PTX112", name=parameter.name, reason=f"it is a block of {size} bytes", expected=expected)
    if isinstance(value, float) or parameter.type in ("f16", "f32", "f64"):
        if parameter.type[0] in "us" or size not in _FLOATS:
            node.fail("PTX112", name=parameter.name, reason=f"it is of type .{parameter.type}", expected="an integer")
        try:
            return struct.pack(_FLOATS[size], value)
        except (OverflowError, struct.error):
            node.fail("PTX112", name=parameter.name, reason=f"it exceeds the largest float of {size} bytes")
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        node.fail("PTX112", name=parameter.name, reason=f"it has {size} bytes")
    return int(value).to_bytes(size, "little", signed=value < 0)


# --- fields of a tensor map -----------------------------------------------------------------------------------


def _set_map_field(fields: MapFields, key: str, node: Node) -> None:
    value = node.value
    if key == "global_address":
        return
    if key in CHOICES:
        choices = CHOICES[key]
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(choices):
            value = choices[value]
        matching = [c for c in choices if isinstance(value, str) and c.lower() == value.lower().removeprefix(".")]
        if not matching:
            expected = "one of " + ", ".join(choices)
            hint = suggest(str(value), choices)
            raise _map_error("LIT036", node, found=f"'{value}'", field=key, expected=expected, hint=hint)
        fields.words[key] = matching[0]
    elif key in LISTS:
        if not isinstance(value, list) or not all(isinstance(n, int) and not isinstance(n, bool) for n in value):
            raise _map_error("LIT036", node, found=repr(value), field=key, expected="a list of integers")
        fields.lists[key] = tuple(value)
    else:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _map_error("LIT036", node, found=repr(value), field=key, expected="an integer")
        fields.numbers[key] = value


def _map_error(code: str, node: Node, *, expected: str, hint: str | None = None, **names: object) -> InputError:
    return problem(code, node.span, expected=expected, hint=hint, **names)
