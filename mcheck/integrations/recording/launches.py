"""What is recorded of a launch: its module and its launch file, in which pointers to the same place are one buffer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """A module and its launch, in the form of a launch file. ``lacks``: what the launch file cannot express."""

    kernel: str
    module: str
    launch: Mapping[str, Any]
    lacks: str = ""

    @property
    def digest(self) -> str:
        """Equal for launches about which the answer is the same."""
        text = json.dumps([self.module, self.launch, self.lacks], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def key(self) -> tuple[str, str, str]:
        """The same within a process, where modules are long strings with a hash of their own."""
        return self.module, json.dumps(self.launch, sort_keys=True), self.lacks


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer argument: where it points, and the memory around it as a range of addresses."""

    address: int
    end: int
    storage: object
    storage_end: int
    init: str | None = None

    def overlaps(self, other: Pointer) -> bool:
        """Whether some byte is in both; equal pointers are one buffer."""
        same = self.storage is other.storage and self.address != other.address
        return same and self.address < other.end and other.address < self.end


@dataclass(slots=True)
class Pointers:
    """The pointers of one launch, as buffers: those of equal addresses are one buffer, with a name."""

    given: list[Pointer] = field(default_factory=list)

    def add(self, pointer: Pointer) -> dict[str, Any]:
        """The buffer of a pointer, by a name that ``finish`` may replace."""
        self.given.append(pointer)
        return {"buffer": _name(pointer)}

    def finish(self, launch: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """The launch file, and what it cannot express."""
        counts: dict[str, int] = {}
        for pointer in self.given:
            counts[_name(pointer)] = counts.get(_name(pointer), 0) + 1
        names = {_name(pointer): pointer for pointer in self.given}
        shared = [name for name, number in counts.items() if number > 1]

        def buffer(name: str) -> dict[str, Any]:
            if name in shared:
                return {"buffer": f"memory{shared.index(name)}"}
            return {"buffer": _size(names[name]), **_init(names[name])}

        replaced: dict[str, Any] = _replace_buffers(launch, buffer)
        if shared:
            declared = {
                f"memory{k}": {"bytes": _size(names[name]), **_init(names[name])} for k, name in enumerate(shared)
            }
            replaced = {"launches": [replaced], "buffers": declared}
        distinct = list(names.values())
        overlap = any(a.overlaps(b) for i, a in enumerate(distinct) for b in distinct[:i])
        return replaced, "arguments that overlap in memory were checked as separate buffers" if overlap else ""


def _name(pointer: Pointer) -> str:
    return f"at {pointer.address:#x}"


def _size(pointer: Pointer) -> int:
    return pointer.storage_end - pointer.address


def _init(pointer: Pointer) -> dict[str, Any]:
    return {} if pointer.init is None else {"init": {"hex": pointer.init}}


def _replace_buffers(value: Any, buffer: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get("buffer"), str):
            return buffer(value["buffer"])
        return {key: _replace_buffers(inner, buffer) for key, inner in value.items()}
    return [_replace_buffers(inner, buffer) for inner in value] if isinstance(value, list) else value


class Recording:
    """The launches since a test, or the import of a module, began: of each kind one, since benchmarks repeat them."""

    def __init__(self) -> None:
        self._open: list[tuple[list[KernelLaunch], set[object]]] = []

    @contextmanager
    def collect(self) -> Iterator[list[KernelLaunch]]:
        """The launches that are made inside, of each kind one."""
        found: list[KernelLaunch] = []
        self._open.append((found, set()))
        try:
            yield found
        finally:
            self._open.pop()

    def add(self, launch: KernelLaunch) -> None:
        """Record a launch."""
        if not self._open:
            return
        found, known = self._open[-1]
        if (key := launch.key) not in known:
            known.add(key)
            found.append(launch)
