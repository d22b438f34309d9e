"""From a record of launches to a launch file: each launch once, in the order of the program, with its memory.

The record has one line for each launch (``recorder/launches.c``). Memory that the host fills between two launches is a
new buffer from there on: its contents are known again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.launch_reader import MAX_LAUNCHES

Line = Mapping[str, Any]
Memory = tuple[int, int, int, int]
"""A process, an allocation of it, how often the host has filled that, how many launches of other modules there were."""
_SHAPE: Final = ("grid", "block", "cluster", "shared", "cooperative", "programmatic", "gpu", "forgotten", "variables")
MAP_BYTES: Final = 128
_WIDTH: Final = 120
MOST_NAMES: Final = 3
"""The maximum number of parameters that memory is named after."""
_UNNAMED: Final = re.compile(r"_param_\d+$")
"""A parameter as the compiler numbers it."""
_OF_LIBRARIES: Final = re.compile(r"cu(?!da)[a-z]|nccl")
"""How functions of libraries of kernels begin (cuBLAS), unlike those of the runtime (``cuda``) and the driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The launches of a program as a launch file says them; ``notes`` are what that leaves out."""

    document: Mapping[str, Any]
    launches: int
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The launch file."""
        return _laid_out(self.document, "") + "\n"


def _laid_out(value: Any, margin: str) -> str:
    """JSON, in which a list or an object that fits has one line."""
    text = json.dumps(value)
    if len(margin) + len(text) <= _WIDTH or not isinstance(value, dict | list):
        return text
    inner = margin + " "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key)}: {_laid_out(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{margin}}}"
    return "[\n" + ",\n".join(inner + _laid_out(item, inner) for item in value) + f"\n{margin}]"


def read_lines(text: str) -> list[Line]:
    """The launches of a record; a line that a stopped program has not ended is left out."""
    found: list[Line] = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def compose_recording(
    lines: Iterable[Line], kernels: Mapping[str, Sequence[str]], variables: Collection[str] = ()
) -> Recording | None:
    """The launch file of these kernels, given with the names of their parameters and the variables of their module;
    ``None`` if the program launches none of them.
    """
    made = list(_launches_of(lines, kernels, variables))
    kept, again = _without_repetitions(made)
    if not kept:
        return None
    notes = []
    if len(kept) > MAX_LAUNCHES:
        notes.append(f"the program makes {len(kept)} different launches, {MAX_LAUNCHES} of them are checked")
        kept = _some_of_each(kept)
    streams = {(line["gpu"], line["stream"]) for line in kept}
    if len(streams) > len({gpu for gpu, _ in streams}):
        notes.append("the program launches in several streams: they are checked as one, in the order of the calls")
    if len({gpu for gpu, _ in streams}) > 1:
        notes.append("the program launches on several GPUs: their launches are taken as concurrent")
    missing = dict.fromkeys(name for line in kept for name in line.get("missing", ()))
    called = [name for name in missing if _OF_LIBRARIES.match(name)]
    if called:
        notes.append(f"kernels of libraries are not checked, and what they compute is unknown: {', '.join(called)}")
    lacking = [name for name in missing if name not in called]
    if lacking:
        notes.append(f"the recorder lacks {', '.join(lacking)}: parameters that depend on it may be wrong")
    document = _Document(kept, kernels).whole() | ({"notes": notes} if notes else {})
    return Recording(document=document, launches=len(kept) + again, notes=tuple(notes))


def _launches_of(lines: Iterable[Line], entries: Collection[str], variables: Collection[str]) -> Iterator[Line]:
    """The launches of these kernels. Behind a launch of another module memory is another one, since that may have
    written it. The variables that hold something else than the module says are those of this module.
    """
    epoch = 0
    for line in lines:
        if line["entry"] in entries:
            forgotten = [name for name in line.get("forgotten", ()) if name in variables]
            known = {name: given for name, given in line.get("variables", {}).items() if name in variables}
            yield {**line, "epoch": epoch, "forgotten": forgotten, "variables": known}
        else:
            epoch += 1


# --- repetitions ------------------------------------------------------------------------------------------------


def _without_repetitions(lines: Sequence[Line]) -> tuple[list[Line], int]:
    """The launches that differ from all before them, and how many do not.

    Of programmatic ones a pair of neighbours counts, since they may overlap. That kernels may have changed the memory
    of an earlier launch makes no difference.
    """
    seen: set[tuple[str, str]] = set()
    contents: dict[Memory, Any] = {}
    kept: list[Line] = []
    before = ""
    for line in lines:
        text = _shape_text(line, contents)
        key = (before if line.get("programmatic") else "", text)
        if key not in seen:
            seen.add(key)
            kept.append(line)
        before = text
    return kept, len(lines) - len(kept)


def _some_of_each(lines: Sequence[Line]) -> list[Line]:
    """So many launches as are checked, in their order: first one of each kernel and shape, then the earliest of those
    that differ in parameters and contents. Where some may overlap with the one before, the earliest.
    """
    if any(line.get("programmatic") for line in lines):
        return list(lines[:MAX_LAUNCHES])
    first: dict[str, int] = {}
    for k, line in enumerate(lines):
        first.setdefault(json.dumps([line["entry"], line["grid"], line["block"], line.get("cluster")]), k)
    earliest = set(first.values())
    chosen = [*first.values(), *(k for k in range(len(lines)) if k not in earliest)][:MAX_LAUNCHES]
    return [lines[k] for k in sorted(chosen)]


def _memory(line: Line, number: int) -> Memory:
    return line["process"], number, line["allocations"][str(number)]["version"], line["epoch"]


def _shape_text(line: Line, contents: dict[Memory, Any]) -> str:
    """The launch as text without addresses: allocations are numbered as they are named, with the contents
    that they had at first.
    """
    numbers: dict[int, int] = {}

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            if "allocation" in value:
                first = value["allocation"] not in numbers
                number = numbers.setdefault(value["allocation"], len(numbers))
                about = line["allocations"][str(value["allocation"])] if first else {}
                init = contents.setdefault(_memory(line, value["allocation"]), about.get("init")) if first else None
                return [number, value["offset"], about.get("bytes"), renamed(init)]
            return {key: renamed(item) for key, item in value.items()}
        return [renamed(item) for item in value] if isinstance(value, list) else value

    shape = {key: line.get(key) for key in ("entry", *_SHAPE)}
    return json.dumps([shape, renamed(line["params"])], sort_keys=True)


# --- the document -----------------------------------------------------------------------------------------------


class _Document:
    """Composes the launch file. Memory of one pointer alone is a buffer of its parameter; other memory has a name, that
    of the parameters that are pointers to it: ``x``, or ``out/in`` where kernels call it differently.
    """

    def __init__(self, lines: Sequence[Line], kernels: Mapping[str, Sequence[str]]) -> None:
        self._lines = lines
        self._called = _parameters_by_memory(lines, kernels)
        self._uses: dict[Memory, int] = {}
        self._names: dict[Memory, str] = {}
        self._buffers: dict[str, Any] = {}
        for line in lines:
            self._count(line, line["params"], set())

    def whole(self) -> dict[str, Any]:
        """The launch file."""
        launches = [self._launch(line) for line in self._lines]
        if self._buffers:
            return {"launches": launches, "buffers": self._buffers}
        return launches[0] if len(launches) == 1 else {"launches": launches}

    def _count(self, line: Line, value: Any, inside: set[int]) -> None:
        """Count the pointers into each allocation, those in the contents of others included."""
        if isinstance(value, dict) and "allocation" in value:
            number = value["allocation"]
            key = _memory(line, number)
            self._uses[key] = self._uses.get(key, 0) + 1
            if number not in inside:
                inside.add(number)
                self._count(line, line["allocations"][str(number)].get("init"), inside)
        elif isinstance(value, dict):
            for item in value.values():
                self._count(line, item, inside)

    def _launch(self, line: Line) -> dict[str, Any]:
        shape = {key: line[key] for key in _SHAPE if line.get(key)}
        params = {key: self._value(line, value) for key, value in line["params"].items()}
        return {"entry": line["entry"], **shape, "shared": line["shared"], "params": params}

    def _value(self, line: Line, value: Mapping[str, Any]) -> Mapping[str, Any]:
        if "allocation" in value:
            maps = _maps_in(line["allocations"][str(value["allocation"])], value["offset"])
            made = [self._map(line, item) for item in maps]
            if made:
                return {"tensormap": made[0]} if len(made) == 1 else {"tensormaps": made}
            return self._pointer(line, value, _Inside())
        if "tensormap" in value:
            return {"tensormap": self._map(line, value["tensormap"])}
        if "at" in value:
            return {**value, "at": {at: self._value(line, item) for at, item in value["at"].items()}}
        return value

    def _map(self, line: Line, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        about = fields["global_address"]
        if "allocation" not in about:
            return fields
        return {**fields, "global_address": self._pointer(line, about, _Inside())}

    def _pointer(self, line: Line, value: Mapping[str, Any], inside: _Inside) -> Mapping[str, Any]:
        """A pointer as a launch file gives it, with the memory that it leads to."""
        number, offset = value["allocation"], value["offset"]
        about = line["allocations"][str(number)]
        key = _memory(line, number)
        if self._uses[key] == 1 and not inside.named:
            contents = self._contents(line, about, offset, _Inside((*inside.of, number)))
            return {"buffer": about["bytes"] - offset, **contents}
        if key not in self._names:
            name = self._names[key] = self._new_name(key)
            placed = {"gpu": about["gpu"]} if about.get("gpu") else {}
            contents = self._contents(line, about, 0, _Inside((*inside.of, number), named=True))
            self._buffers[name] = {"bytes": about["bytes"], **placed, **contents}
        return {"buffer": self._names[key], **({"offset": offset} if offset else {})}

    def _new_name(self, key: Memory) -> str:
        """A name that neither other memory has nor a parameter that is something else."""
        called = self._called.get(key, ())
        name = "/".join(called)
        others = {one for memory, names in self._called.items() if memory != key for one in names}
        if not 0 < len(called) <= MOST_NAMES:
            return f"buffer{len(self._names)}"
        if name in others or name in self._names.values():
            return f"{name}.{len(self._names)}"
        return name

    def _contents(self, line: Line, about: Mapping[str, Any], offset: int, inside: _Inside) -> Mapping[str, Any]:
        """What the host has filled of the memory from ``offset`` on, up to what a launch file cannot give: tensor maps
        among other contents, pointers to memory that leads back here.
        """
        init = about.get("init")
        if init is None:
            return {}
        end, at = len(init["hex"]) // 2, {}
        for place, item in sorted(((int(key), item) for key, item in init.get("at", {}).items()), key=itemgetter(0)):
            if place < offset:
                continue
            if "tensormap" in item or item["allocation"] in inside.of:
                end = min(end, place)
                break
            at[str(place - offset)] = self._pointer(line, item, inside)
        if end <= offset:
            return {}
        return {"init": {"hex": init["hex"][2 * offset : 2 * end], **({"at": at} if at else {})}}


@dataclass(frozen=True, slots=True)
class _Inside:
    """The allocations whose contents are being written, and whether one of them has a name: what it points to has one
    then.
    """

    of: tuple[int, ...] = ()
    named: bool = False


def _parameters_by_memory(
    lines: Sequence[Line], kernels: Mapping[str, Sequence[str]]
) -> dict[Memory | None, tuple[str, ...]]:
    """The names of the parameters that are pointers to each memory, and those of all others for ``None``."""
    found: dict[Memory | None, dict[str, None]] = {}
    for line in lines:
        names = kernels[line["entry"]]
        for key, value in line["params"].items():
            name = names[int(key)] if int(key) < len(names) else ""
            if not name or _UNNAMED.search(name):
                continue
            number = value.get("allocation")
            is_map = number is not None and _maps_in(line["allocations"][str(number)], value["offset"])
            memory = None if number is None or is_map else _memory(line, number)
            found.setdefault(memory, {})[name] = None
    return {memory: tuple(called) for memory, called in found.items()}


def _maps_in(about: Mapping[str, Any], offset: int) -> list[Mapping[str, Any]]:
    """The tensor maps that fill memory from ``offset`` on."""
    found: list[Mapping[str, Any]] = []
    at = (about.get("init") or {}).get("at", {})
    while "tensormap" in at.get(str(offset + MAP_BYTES * len(found)), {}):
        found.append(at[str(offset + MAP_BYTES * len(found))]["tensormap"])
    return found
