"""Reader of launches: from JSON, options and the module to a ``Launch``; every error has its location.

The rules are those of the driver (CUDA programming guide, compute capabilities) and of the directives of the entry (PTX
ISA 11.4). All missing fields are reported in one error.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from math import prod
from os import PathLike, fspath
from typing import Any, Final

from mcheck.base.errors import InputError, Span, Unsupported
from mcheck.base.records import dataclass, replace
from mcheck.frontend.litmus.codes import suggest
from mcheck.frontend.litmus.source import read_source
from mcheck.frontend.ptx.json_positions import Node, parse_document
from mcheck.frontend.ptx.known_contents import Contents
from mcheck.frontend.ptx.launch import Buffer, Extent, Launch
from mcheck.frontend.ptx.launch_arguments import read_arguments, read_variable
from mcheck.frontend.ptx.module import Address, Arguments, Function, Module, Operand, Symbol, Vector
from mcheck.frontend.ptx.problems import MESSAGES, problem
from mcheck.frontend.ptx.source_signatures import describe_parameter, list_entries, resolve_entry
from mcheck.ir.assumptions import NAMES
from mcheck.isa.targets import check_target

FIELDS: Final = (
    "entry", "grid", "block", "cluster", "shared", "first", "params", "assume", "gpu", "programmatic", "cooperative",
    "forgotten", "variables",
)  # fmt: skip
SEQUENCE_FIELDS: Final = ("launches", "buffers")
NOTES: Final = "notes"
"""The field that recorded launches have beside those that users write."""
MAX_LAUNCHES: Final = 256
MAX_GPU: Final = 1023
MAX_GRID: Final = ((1 << 31) - 1, 65535, 65535)
MAX_BLOCK: Final = (1024, 1024, 64)
MAX_THREADS: Final = 1024
MAX_CLUSTER: Final = 16
MAX_SHARED: Final = 227 << 10
"""Maximum dynamic shared memory of any target, in bytes (sm_90, sm_100)."""


@dataclass(frozen=True, slots=True)
class LaunchDescription:
    """The description of a launch, unchecked: fields, and parameters by name or index.

    ``launches`` are those of a file of several, ``buffers`` what it declares; ``place`` is a launch of such a file.
    ``notes`` are what the file leaves out, in words: an answer rests on it.
    """

    fields: Mapping[str, Node] = field(default_factory=dict)
    params: Mapping[str, Node] = field(default_factory=dict)
    launches: tuple[LaunchDescription, ...] = ()
    buffers: Mapping[str, Node] = field(default_factory=dict)
    place: Node | None = None
    notes: tuple[str, ...] = ()

    def override(self, other: LaunchDescription) -> LaunchDescription:
        """This description where it has a value, else ``other``; raises ``InputError`` if that is of several
        launches.
        """
        nodes = [node for given in (self.fields, self.params) for node in given.values()]
        if other.launches and nodes:
            said = ", ".join(dict.fromkeys(node.where.split()[0] for node in nodes))
            place = other.launches[0].place
            path = None if place is None or place.source is None else place.source.path
            span = None if path is None else Span(path, 1, 1)
            hint = "write it in the launch that it is for"
            raise problem("PTX121", span, options=said, count=len(other.launches), hint=hint)
        if other.launches:
            return other
        notes = (*other.notes, *self.notes)
        return LaunchDescription({**other.fields, **self.fields}, {**other.params, **self.params}, notes=notes)


def from_json(text: str, path: str) -> LaunchDescription:
    """The launch, or the launches, described by a JSON document; raises ``InputError``."""
    whole = parse_document(text, path)
    if isinstance(whole.value, list):
        expected = "an object with entry, grid, block and params"
        whole.fail("PTX103", what="launch", expected=expected, hint='several launches are {"launches": [...]}')
    if isinstance(whole.value, dict) and is_sequence(whole.value):
        return _describe_launches(whole)
    return _describe_launch(whole)


def is_sequence(value: Mapping[str, Any]) -> bool:
    """Whether a document is of several launches."""
    return "launches" in value or "buffers" in value


def from_toml(text: str, path: str) -> LaunchDescription:
    """The launch, or the launches, described by a TOML document of the same form; raises ``InputError``."""
    import tomllib

    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise problem("PTX101", Span(path, 1, 1), reason=f"{error} (TOML)") from None
    whole = Node(value, path)
    return _describe_launches(whole) if is_sequence(value) else _describe_launch(whole)


def from_text(text: str, path: str) -> LaunchDescription:
    """The launch in a file of either form, by its name; raises ``InputError``."""
    return from_toml(text, path) if path.lower().endswith(".toml") else from_json(text, path)


def _describe_launches(whole: Node) -> LaunchDescription:
    for key, node in whole.items():
        if key not in (*SEQUENCE_FIELDS, NOTES):
            hint = "write it in each launch" if key in FIELDS else suggest(key, SEQUENCE_FIELDS)
            node.fail_at_key("PTX104", name=key, expected="launches or buffers", hint=hint)
    if "launches" not in whole.value:
        expected = '"launches" beside "buffers": [{"entry": …}, …]'
        raise problem("PTX105", whole.child("buffers").key_span, missing="launches", expected=expected)
    listed = whole.child("launches")
    if not isinstance(listed.value, list) or not listed.value:
        listed.fail("PTX103", what="list of launches", expected='[{"entry": …, "grid": …}, …], at least one')
    if len(listed.value) > MAX_LAUNCHES:
        listed.fail("PTX108", what="launches", found=len(listed.value), limit=f"at most {MAX_LAUNCHES} are followed")
    buffers: dict[str, Node] = {}
    if "buffers" in whole.value:
        declared = whole.child("buffers")
        if not isinstance(declared.value, dict):
            declared.fail("PTX103", what="object", expected='buffers by name, such as {"x": {"bytes": 4096}}')
        buffers = dict(declared.items())
    launches = []
    for k in range(len(listed.value)):
        node = listed.child(k)
        launches.append(replace(_describe_launch(node), place=node))
    notes = read_notes(whole.child(NOTES)) if NOTES in whole.value else ()
    return LaunchDescription(launches=tuple(launches), buffers=buffers, notes=notes)


def _describe_launch(whole: Node) -> LaunchDescription:
    if not isinstance(whole.value, dict):
        whole.fail("PTX103", what="launch", expected="an object with entry, grid, block and params")
    fields = {}
    for key, node in whole.items():
        if key not in (*FIELDS, NOTES):
            node.fail_at_key("PTX104", name=key, expected=f"one of {', '.join(FIELDS)}", hint=suggest(key, FIELDS))
        fields[key] = node
    params, told = fields.pop("params", None), fields.pop(NOTES, None)
    notes = () if told is None else read_notes(told)
    if params is None:
        return LaunchDescription(fields, notes=notes)
    if isinstance(params.value, list):
        return LaunchDescription(fields, {str(k): params.child(k) for k in range(len(params.value))}, notes=notes)
    if not isinstance(params.value, dict):
        params.fail("PTX103", what="object", expected="parameters by name or by index")
    return LaunchDescription(fields, dict(params.items()), notes=notes)


def read_notes(node: Node) -> tuple[str, ...]:
    """What a launch file leaves out, in words."""
    if not isinstance(node.value, list) or not all(isinstance(note, str) for note in node.value):
        node.fail("PTX103", what="list of notes", expected='texts, such as ["streams are not told apart"]')
    return tuple(node.value)


def from_file(path: str | PathLike[str]) -> LaunchDescription:
    """The launch in the file at ``path``; raises ``InputError``."""
    name = fspath(path)
    return from_text(read_source(name), name)


def from_object(launch: Mapping[str, Any]) -> LaunchDescription:
    """The launch described by a dictionary of the same form; raises ``InputError``."""
    try:
        text = json.dumps(launch, indent=1)
    except (TypeError, ValueError) as error:
        raise InputError(MESSAGES["PTX101"].format(reason=error), code="PTX101") from None
    return from_json(text, "<launch>")


def from_words(fields: Iterable[tuple[str, str]], params: Iterable[tuple[str, str]]) -> LaunchDescription:
    """The launch described by options: ``grid`` 4,1,1, ``shared`` 1024, parameters as numbers or as JSON."""
    return LaunchDescription(
        {name: Node(_parse_option(name, value), f"--{name}") for name, value in fields},
        {name: Node(_parse_parameter(value), f"--param {name}") for name, value in params},
    )


def _parse_option(name: str, value: str) -> object:
    if name == "entry":
        return value
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        return value
    return int(parts[0]) if name == "shared" and len(parts) == 1 else [int(part) for part in parts]


def _parse_parameter(value: str) -> object:
    """Parse JSON, a hexadecimal number, or a word."""
    try:
        return int(value, 16) if value.lower().startswith("0x") else json.loads(value)
    except (ValueError, RecursionError):
        return value


_OPTION_EXAMPLES = {"entry": "NAME", "grid": "4,1,1", "block": "128,1,1", "cluster": "2,1,1", "shared": "N"}
"""The options for the required fields, each with an example value."""


def build_launch(module: Module, given: LaunchDescription, declared: Mapping[str, Buffer] | None = None) -> Launch:
    """Validate the launch of an entry of ``module``; raises ``InputError`` for what is wrong or missing. ``declared``
    are the buffers of a file of several launches.
    """
    if given.launches:
        place = given.launches[0].place
        span = None if place is None else place.span
        raise problem("PTX122", span, count=len(given.launches), expected="a file of one launch")
    if module.address_size != 64:
        message = MESSAGES["PTX120"].format(bits=module.address_size)
        raise Unsupported(message, Span(module.path, 1, 1), code="PTX120", hint=".address_size 64")
    check_target(module.target, module.target_span)
    missing: list[str] = []
    entry = _entry(module, given, missing)
    if entry is None:
        raise _incomplete_error(missing, given, (), module.functions[module.entries[0]].span)
    return _LaunchBuilder(module, entry, given, declared).launch()


def _entry(module: Module, given: LaunchDescription, missing: list[str]) -> Function | None:
    entries = module.entries
    if not entries:
        raise problem("PTX116", Span(module.path, 1, 1), expected="a .entry")
    node = given.fields.get("entry")
    if node is None:
        if len(entries) == 1:
            return module.functions[entries[0]]
        missing.append(f"entry (one of {', '.join(list_entries(entries))})")
        return None
    found = resolve_entry(str(node.value), entries)
    if len(found) == 1:
        return module.functions[found[0]]
    listed = list_entries(found or entries)
    if found:
        node.fail("PTX124", name=node.value, expected=f"one of {', '.join(listed)}")
    hint = suggest(str(node.value), listed)
    return node.fail("PTX106", name=node.value, expected=f"one of {', '.join(listed)}", hint=hint)


def _incomplete_error(
    missing: list[str], given: LaunchDescription, unknown: tuple[str, ...], head: Span, most: Extent | None = None
) -> InputError:  # fmt: skip
    """The error about missing fields, at the launch file or else at the entry, which has at most ``most`` threads in a
    CTA.
    """
    such_as = _OPTION_EXAMPLES if most is None else {**_OPTION_EXAMPLES, "block": ",".join(map(str, most))}
    expected = None
    if unknown:
        expected = f"parameters that are not given are unknown: {', '.join(unknown)}"
    nodes = (*given.fields.values(), *given.params.values())
    path = next((node.source.path for node in nodes if node.source is not None), None)
    if given.place is not None:
        hint = "a field of this launch"
        return problem("PTX105", given.place.span, missing=", ".join(missing), expected=expected, hint=hint)
    options = " ".join(f"--{word} {such_as[word]}" for item in missing if (word := item.split()[0]) in such_as)
    hint = f"{options or 'an option'}, or a field of the launch file (--launch, or the module's name with .json)"
    if not nodes:
        hint += (
            "; mcheck.integrations.cuda records the launches of a host program, which -- ./program behind the module"
            " names, mcheck.integrations.triton derives one from a kernel"
        )
    span = head if path is None else Span(path, 1, 1)
    return problem("PTX105", span, missing=", ".join(missing), expected=expected, hint=hint)


class _LaunchBuilder:
    """Validation of one launch of one entry."""

    def __init__(
        self, module: Module, entry: Function, given: LaunchDescription, declared: Mapping[str, Buffer] | None
    ) -> None:
        self._module = module
        self._entry = entry
        self._given = given
        self._declared = declared
        self._missing: list[str] = []

    def launch(self) -> Launch:
        entry = self._entry
        signature = self._module.signatures.get(entry.name)
        given = read_arguments(entry, self._given.params, self._declared, signature)
        block = self._block()
        cluster = self._cluster()
        grid = self._extent("grid", MAX_GRID)
        if grid is None:
            self._missing.append("grid")
        shared = self._shared()
        if self._missing or block is None or grid is None or cluster is None or shared is None:
            unknown = tuple(describe_parameter(entry, k, signature) for k, a in enumerate(given) if not a.is_given)
            raise _incomplete_error(self._missing, self._given, unknown, entry.span, self._directive("maxntid"))
        if "blocksareclusters" in entry.directives:
            grid = (grid[0] * cluster[0], grid[1] * cluster[1], grid[2] * cluster[2])
        if any(g % c for g, c in zip(grid, cluster, strict=True)):
            self._at("grid").fail("PTX109", grid=_format_extent(grid), cluster=_format_extent(cluster))
        return Launch(
            entry=entry.name,
            grid=grid,
            block=block,
            cluster=cluster,
            shared=shared,
            first=self._first(grid),
            arguments=given,
            assume=self._assume(),
            gpu=self._gpu(),
            programmatic=self._flag("programmatic"),
            cooperative=self._flag("cooperative"),
            contents=self._contents(),
        )

    def _contents(self) -> tuple[Contents, ...]:
        """What variables hold, whatever the module says: anything, or what the launch gives and anything behind it."""
        known = dict(self._module.all_variables)
        found = {name: Contents(("variable", name), 0) for name in self._forgotten(known)}
        node = self._given.fields.get("variables")
        if node is not None and not isinstance(node.value, dict):
            node.fail("PTX103", what="object of variables", expected='such as {"flag": {"init": {"hex": "01000000"}}}')
        for name, item in node.items() if node is not None else ():
            if name not in known or known[name].space not in ("global", "const"):
                hint = suggest(name, [n for n, v in known.items() if v.space in ("global", "const")])
                item.fail_at_key("PTX103", what="variable", expected="a global or constant variable", hint=hint)
            data = read_variable(item, known[name].size)
            found[name] = Contents(("variable", name), 0, ((0, data),) if data else ())
        return tuple(found.values())

    def _forgotten(self, known: Collection[str]) -> list[str]:
        node = self._given.fields.get("forgotten")
        if node is None:
            return []
        if not isinstance(node.value, list) or not all(isinstance(name, str) for name in node.value):
            node.fail("PTX103", what="list of variables", expected='names of the module, such as ["flag"]')
        for name in node.value:
            if name not in known:
                expected = "names of variables of the module"
                node.fail("PTX103", what="list of variables", expected=expected, hint=suggest(name, tuple(known)))
        return node.value

    def _at(self, name: str) -> Node:
        return self._given.fields.get(name) or Node(None, f"/{name}")

    def _extent(self, name: str, most: Extent) -> Extent | None:
        """The field as three numbers, each from 1 to that of ``most``; ``None`` if it is not given."""
        node = self._given.fields.get(name)
        if node is None:
            return None
        values = [node.value] if _is_integer(node.value) else node.value
        if not (isinstance(values, list) and 1 <= len(values) <= 3 and all(map(_is_integer, values))):
            node.fail("PTX103", what="extent", expected="one to three integers, such as [4, 1, 1]")
        full = (*values, 1, 1)[:3]
        for axis, value, limit in zip("xyz", full, most, strict=True):
            if not 1 <= value <= limit:
                node.fail("PTX108", what=f"{name}.{axis}", found=value, limit=f"expected 1 to {limit}")
        return full[0], full[1], full[2]

    def _directive(self, name: str) -> Extent | None:
        numbers = self._entry.directives.get(name)
        if not numbers:
            return None
        full = (*numbers, 1, 1)[:3]
        return full[0], full[1], full[2]

    def _block(self) -> Extent | None:
        required = self._directive("reqntid")
        block = self._extent("block", MAX_BLOCK)
        if block is None:
            if required is None:
                self._missing.append("block")
            return required
        if required is not None and block != required:
            said = f".reqntid {_format_extent(required)}"
            self._at("block").fail("PTX107", what="block", found=_format_extent(block), wanted=said)
        most, limit = self._directive("maxntid"), MAX_THREADS
        if most is not None:
            limit = min(limit, prod(most))
        if prod(block) > limit:
            why = (
                f"a CTA has at most {limit} threads"
                if most is None
                else f"the entry requires .maxntid {_format_extent(most)}"
            )
            self._at("block").fail("PTX108", what="block", found=_format_extent(block), limit=why)
        return block

    def _cluster(self) -> Extent | None:
        required = self._directive("reqnctapercluster")
        cluster = self._extent("cluster", (MAX_CLUSTER,) * 3)
        if cluster is None:
            if required is None and "explicitcluster" in self._entry.directives:
                self._missing.append("cluster")
                return None
            return required or (1, 1, 1)
        if required is not None and cluster != required:
            said = f".reqnctapercluster {_format_extent(required)}"
            self._at("cluster").fail("PTX107", what="cluster", found=_format_extent(cluster), wanted=said)
        most = self._entry.directives.get("maxclusterrank", (MAX_CLUSTER,))[0]
        if prod(cluster) > most:
            why = f"a cluster has at most {most} CTAs"
            self._at("cluster").fail("PTX108", what="cluster", found=_format_extent(cluster), limit=why)
        return cluster

    def _shared(self) -> int | None:
        node = self._given.fields.get("shared")
        if node is None:
            names = sorted(_dynamic_variables(self._module, self._entry))
            if names:
                self._missing.append(f"shared (the bytes of {', '.join(names)})")
                return None
            return 0
        if not _is_integer(node.value) or node.value < 0:
            node.fail("PTX103", what="size", expected="a number of bytes")
        if node.value > MAX_SHARED:
            node.fail("PTX108", what="shared", found=node.value, limit=f"a CTA has at most {MAX_SHARED} bytes")
        return int(node.value)

    def _first(self, grid: Extent) -> Extent:
        node = self._given.fields.get("first")
        if node is None:
            return 0, 0, 0
        value = node.value
        if not (isinstance(value, list) and len(value) == 3 and all(map(_is_integer, value))):
            node.fail("PTX103", what="CTA", expected="three integers, such as [0, 0, 0]")
        for axis, at, extent in zip("xyz", value, grid, strict=True):
            if not 0 <= at < extent:
                node.fail("PTX108", what=f"first.{axis}", found=at, limit=f"the grid has 0 to {extent - 1}")
        return value[0], value[1], value[2]

    def _gpu(self) -> int:
        node = self._given.fields.get("gpu")
        return 0 if node is None else read_gpu(node)

    def _flag(self, name: str) -> bool:
        node = self._given.fields.get(name)
        if node is None:
            return False
        if not isinstance(node.value, bool):
            node.fail("PTX103", what="flag", expected="true or false")
        return bool(node.value)

    def _assume(self) -> tuple[str, ...]:
        node = self._given.fields.get("assume")
        if node is None:
            return ()
        if not isinstance(node.value, list):
            node.fail("PTX103", what="list", expected='such as ["converged"]')
        for k, name in enumerate(node.value):
            if name not in NAMES:
                hint = suggest(str(name), NAMES)
                node.child(k).fail("PTX115", found=name, expected=f"one of {', '.join(NAMES)}", hint=hint)
        return tuple(dict.fromkeys(node.value))


def read_gpu(node: Node) -> int:
    """The number of a GPU."""
    if not _is_integer(node.value):
        node.fail("PTX103", what="GPU", expected="its number, such as 0")
    if not 0 <= node.value <= MAX_GPU:
        node.fail("PTX108", what="gpu", found=node.value, limit=f"expected 0 to {MAX_GPU}")
    return int(node.value)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _format_extent(extent: Extent) -> str:
    return ", ".join(map(str, extent))


# --- dynamic shared memory ------------------------------------------------------------------------------------


def needs_shared_size(module: Module, entry: Function) -> bool:
    """Whether a launch of the entry has to give the bytes of dynamic shared memory."""
    return bool(_dynamic_variables(module, entry))


def _dynamic_variables(module: Module, entry: Function) -> set[str]:
    """The dynamic shared variables that the entry, or a function that it may call, refers to."""
    found: set[str] = set()
    seen, todo = {entry.name}, [entry]
    while todo:
        function = todo.pop()
        names = {
            name for statement in function.body for operand in statement.operands for name in _named_symbols(operand)
        }
        names |= {name for targets in function.call_targets.values() for name in targets}
        for name in names - function.variables.keys():
            variable = module.variables.get(name)
            if variable is not None and variable.space == "shared" and variable.size is None:
                found.add(name)
            called = module.functions.get(module.aliases.get(name, name))
            if called is not None and called.name not in seen:
                seen.add(called.name)
                todo.append(called)
    return found


def _named_symbols(operand: Operand) -> list[str]:
    match operand:
        case Symbol():
            return [operand.name]
        case Address():
            named = [operand.base.name] if isinstance(operand.base, Symbol) else []
            return named + [name for item in operand.rest for name in _named_symbols(item)]
        case Vector() | Arguments():
            return [name for item in operand.items for name in _named_symbols(item)]
    return []
