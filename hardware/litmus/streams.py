"""The code of the threads of a role as one stream that all of them run, as the lanes of a warp run one code.

The operations of the threads are aligned by their place in the text and the round of their loops. Where a lane has no
operation (``if (%laneid == 0)``) it passes by; where lanes have other constants (``[s + 4*%laneid]``), the operand is a
``Varying``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from hardware.emit import CannotEmit
from mcheck.base.errors import Span
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread


@dataclass(frozen=True, slots=True)
class Varying:
    """A constant that is not the same in all threads: their numbers, and the values."""

    values: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A place of a stream: the label that stands there, or the operation of the threads ``members``."""

    members: frozenset[int]
    op: Op | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Stream:
    """The threads of a role, or of the roles of a warpgroup, and what they run."""

    role: str
    threads: tuple[Thread, ...]
    steps: tuple[Step, ...]
    labels: dict[str, int]

    @property
    def operations(self) -> tuple[Op, ...]:
        """What is executed."""
        return tuple(ops.performed_operation(s.op) for s in self.steps if s.op is not None)


@dataclass(slots=True)
class _Node:
    key: Any
    found: dict[int, Op | None]


def streams(program: Program) -> tuple[Stream, ...]:
    """The streams of a program, in the order of its roles; roles that share a warpgroup are one."""
    roles: dict[str, list[Thread]] = {}
    for thread in program.threads:
        roles.setdefault(thread.role, []).append(thread)
    multiplies = {
        t.place.warpgroup for t in program.threads for op in t.code if of_warpgroup(ops.performed_operation(op))
    }
    found: list[list[str]] = []
    for role, threads in roles.items():
        groups = {t.place.warpgroup for t in threads} & multiplies
        beside = next((f for f in found if groups & {t.place.warpgroup for r in f for t in roles[r]}), None)
        if beside is None:
            found.append([role])
        else:
            beside.append(role)
    return tuple(_stream(names, tuple(t for name in names for t in roles[name])) for names in found)


def of_warpgroup(op: Op) -> bool:
    """Whether all lanes of a warpgroup execute the operation together."""
    return isinstance(op, ops.Wgmma | ops.WgmmaFence) or getattr(op, "family", "") == "wgmma"


def _stream(roles: list[str], threads: tuple[Thread, ...]) -> Stream:
    groups: dict[Any, list[tuple[Thread, list[Op | None]]]] = {}
    for thread in threads:
        keys, found = _sequence(thread, alone=len(roles) == 1)
        groups.setdefault(tuple(keys), []).append((thread, found))
    nodes: list[_Node] = []
    for keys, members in sorted(groups.items(), key=lambda item: -len(item[0])):
        nodes = _merged(nodes, keys, members)
    steps = tuple(_step(node) for node in nodes)
    labels = {s.label: at for at, s in enumerate(steps) if s.label}
    if len(labels) != sum(bool(s.label) for s in steps):
        raise CannotEmit("the labels of the lanes of a warp do not agree")
    return Stream(" and ".join(roles), threads, steps, labels)


def _sequence(thread: Thread, *, alone: bool) -> tuple[list[Any], list[Op | None]]:
    """What identifies each label and operation of a thread, and the operations. What a warpgroup does as one stands in
    several places of the text where its warps have several roles.
    """
    places: dict[int, list[str]] = {}
    for label, at in thread.labels.items():
        places.setdefault(at, []).append(label)
    keys: list[Any] = []
    found: list[Op | None] = []
    for at in range(len(thread.code) + 1):
        for label in places.get(at, ()):
            keys.append((label,) if alone else (thread.role, label))
            found.append(None)
        if at < len(thread.code) and not isinstance(thread.code[at], ops.Label):
            op = thread.code[at]
            turn = thread.iterations.label_at(at) if thread.iterations is not None else ""
            place = (op.span, turn) if alone or not of_warpgroup(op) else ()
            keys.append((place, _skeleton(op)))
            found.append(op)
    return keys, found


def _merged(nodes: list[_Node], keys: tuple[Any, ...], members: list[tuple[Thread, list[Op | None]]]) -> list[_Node]:
    """A sequence that both the one so far and another one are parts of."""

    def of(place: int) -> dict[int, Op | None]:
        return {thread.index: found[place] for thread, found in members}

    out: list[_Node] = []
    matcher = SequenceMatcher(None, [node.key for node in nodes], keys, autojunk=False)
    for what, old, old_end, new, new_end in matcher.get_opcodes():
        if what == "equal":
            for node, at in zip(nodes[old:old_end], range(new, new_end), strict=True):
                out.append(_Node(node.key, {**node.found, **of(at)}))
            continue
        out += nodes[old:old_end]
        out += [_Node(keys[at], of(at)) for at in range(new, new_end)]
    return out


def _step(node: _Node) -> Step:
    members = frozenset(node.found)
    if None in node.found.values():
        return Step(members, label=node.key[-1])
    found = {k: op for k, op in node.found.items() if op is not None}
    op = _combined(found)
    assert isinstance(op, Op)
    return Step(members, op)


def _skeleton(value: Any) -> Any:
    """The value without what it says about the text, and without its constants."""
    if isinstance(value, Const):
        return "constant"
    if is_dataclass(value) and not isinstance(value, type) and not isinstance(value, Span):
        return (type(value).__name__, *(_skeleton(getattr(value, f.name)) for f in fields(value) if f.compare))
    if isinstance(value, tuple):
        return tuple(map(_skeleton, value))
    return value


def _combined(found: Mapping[int, Any]) -> Any:
    """One value for values of one skeleton."""
    values = list(found.values())
    first = values[0]
    if all(value is first or value == first for value in values):
        return first
    if isinstance(first, Const):
        return Varying(tuple((k, v.value) for k, v in found.items()))
    if isinstance(first, tuple):
        return tuple(_combined({k: v[n] for k, v in found.items()}) for n in range(len(first)))
    changed = {f.name: _combined({k: getattr(v, f.name) for k, v in found.items()}) for f in _compared(first)}
    return replace(first, **changed)


def _compared(value: Any) -> Iterable[Any]:
    return (f for f in fields(value) if f.compare and f.init)
