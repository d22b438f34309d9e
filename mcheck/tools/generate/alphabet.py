"""Alphabets: edges, their ends, and the kinds of asynchronous copies, written in TOML.

An end is an access of a thread, ``R`` or ``W``, with an annotation (``rlx``, ``acq``), or the read ``r`` or the write
``w`` of an asynchronous copy, with its kind. An edge connects two ends:

* ``rf``, ``fr``, ``co`` between accesses to one location, in one thread (a copy belongs to its issuer) or two;
* ``po``: the path of steps between two accesses. A step is an instruction, or one of ``STEPS``;
* ``copy``: from the read of a copy to its write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, field, fields
from pathlib import Path
from typing import Any, get_args, get_origin

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass
from mcheck.base.resources import litmus
from mcheck.isa.wording import join_alternatives
from mcheck.tools.generate.document import Document, Row, read
from mcheck.tools.generate.operands import NAMES, find_unknown_placeholder

THREAD_ENDS = ("R", "W")
COPY_ENDS = ("r", "w")
RELATIONS = ("rf", "fr", "co", "po", "copy")
DISTANCES = ("cta", "cluster", "gpu", "sys")
SPACES = ("global", "shared", "peer", "register")
SIGNALS = ("mbarrier", "bulk", "cp.async")
MOST_EDGES = 32
"""The maximum number of edges of a cycle."""
MOST_ENDS = 100
"""The maximum number of annotations, and of kinds of copies."""
MOST_ARCS = 100_000
"""The maximum number of arcs of an alphabet; the largest shipped one has some hundreds."""
NAME = re.compile(r"[A-Za-z0-9_.+]{1,64}", re.ASCII)
"""Names of edges, copies and annotations, which become parts of file names."""
DEPENDENCIES = ("addr", "data", "ctrl")
HANDOVERS = {
    "bar": "cta",  # bar.sync of the two warps
    "bar.arrive": "cta",  # bar.arrive there, bar.sync here
    "mbar": "cta",  # an arrive on an mbarrier and a wait for its phase
    "mbar.relaxed": "cta",  # both relaxed
    "mbar.cluster": "cluster",  # an arrive on the mbarrier of another CTA, at cluster scope
    "cluster": "cluster",  # barrier.cluster
    "cluster.relaxed": "cluster",  # barrier.cluster.arrive.relaxed
    "wait.elsewhere": None,  # another thread waits for the mbarrier of a copy
}
"""Steps that continue in another thread, and its distance (``None``: given by the edge)."""

STEPS = (
    *HANDOVERS,
    *DEPENDENCIES,
    "issue",  # the copy that the edge leads to
    "wait",  # for the copy that the edge comes from: its group, or its mbarrier
    "wait.read",  # cp.async.bulk.wait_group.read
    "wait.relaxed",  # the mbarrier, relaxed
)


@dataclass(frozen=True, slots=True)
class CopyKind:
    """A kind of asynchronous copy, with placeholders ``{dst}``, ``{src}`` and ``{bar}`` for operands in ``code``.

    ``source`` and ``target`` are ``global``, ``shared``, ``peer`` (the shared memory of another CTA of the cluster) or
    ``register``; ``signal`` is ``mbarrier``, ``bulk`` or ``cp.async``; ``expect``: its bytes are announced; ``most``:
    it writes the maximum of the old and the new value.
    """

    name: str
    code: str
    source: str
    target: str
    signal: str
    expect: bool = True
    most: bool = False
    map: str = ""  # source or target: the side with a tensor map, {map}


@dataclass(frozen=True, slots=True)
class End:
    """An end of an edge: ``kind`` is one of ``R W r w``; ``note`` is an annotation or the kind of the copy."""

    kind: str
    note: str

    @property
    def copied(self) -> bool:
        """Whether the end belongs to an asynchronous copy."""
        return self.kind in COPY_ENDS

    @property
    def writes(self) -> bool:
        """Whether the end is a write."""
        return self.kind in ("W", "w")


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge. ``far`` is the distance between the threads of its ends, empty within one thread.

    ``moved``: its ends access different locations.
    """

    name: str
    relation: str
    ends: tuple[str, str]
    far: str = ""
    moved: bool = False
    path: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name in diy's notation: ``PodRW``, ``Rfe``."""
        if self.relation == "copy":
            return self.name
        if self.relation == "po":
            return f"{self.name}{'d' if self.moved else 's'}{''.join(self.ends)}"
        letters = "".join(self.ends) if {*self.ends} & {*COPY_ENDS} else ""
        where = {"": "i", "gpu": "e"}.get(self.far, f"e.{self.far}")
        return f"{self.name}{where}{letters}"


@dataclass(frozen=True, slots=True)
class Arc:
    """An edge between two particular ends."""

    edge: Edge
    source: End
    target: End

    @property
    def communicates(self) -> bool:
        """Whether the edge is rf, fr or co."""
        return self.edge.relation in ("rf", "fr", "co")


@dataclass(frozen=True, slots=True)
class Alphabet:
    """An alphabet: the arcs from which cycles are built."""

    name: str
    annotations: dict[str, str]
    copies: dict[str, CopyKind]
    arcs: tuple[Arc, ...]
    sizes: tuple[int, ...] = (4,)
    spaces: tuple[str, ...] = field(default=("global",))


def folder() -> Path:
    """The folder of the shipped alphabets."""
    return Path(litmus()) / "generate"


def names() -> list[str]:
    """The names of the shipped alphabets."""
    return sorted(path.stem for path in folder().glob("*.toml"))


def load(name: str) -> Alphabet:
    """Load an alphabet from a file, or the shipped one of this name."""
    path = Path(name) if name.endswith(".toml") else folder() / f"{name}.toml"
    try:
        return _alphabet(path.stem, read(path))
    except (OSError, ValueError) as error:
        if name.endswith(".toml"):
            reason = error.strerror if isinstance(error, OSError) else None
            raise InputError(f"cannot read {name}: {reason or error}") from None
        raise InputError(f"unknown alphabet {name}", hint=f"the shipped alphabets are {', '.join(names())}") from None


def _alphabet(name: str, document: Document) -> Alphabet:
    data = document.data
    document.refuse_unknown_keys(data, ("sizes", "annotations", "ends", "copy", "edge"))
    sizes = _field(document, data, "sizes", list[int], [4])
    if any(size not in range(2, MOST_EDGES + 1) for size in sizes):
        raise document.error(f"a cycle must have 2 to {MOST_EDGES} edges", key="sizes")
    annotations = _field(document, data, "annotations", dict[str, str], {"rlx": "relaxed.gpu"})
    for called in annotations:
        _named(document, called, ("annotations", 0))
    given = _field(document, data, "ends", dict[str, list[str]], {})
    document.refuse_unknown_keys(given, THREAD_ENDS, ("ends", 0))
    ends = {kind: list(given.get(kind, ["rlx"])) for kind in THREAD_ENDS}
    for kind, notes in ends.items():
        for note in notes:
            if note not in annotations:
                raise document.error(f"the annotation {note} is not defined", ("ends", 0), kind)
    ends = {kind: list(dict.fromkeys(notes)) for kind, notes in ends.items()}
    copies = {c.name: c for c in (_copy(document, row, at) for row, at in _rows(document, "copy"))}
    edges: list[Edge] = []
    for row, at in _rows(document, "edge"):
        edges += _edges(document, row, at)
        if len(edges) > MOST_ARCS:
            raise document.error(f"more than {MOST_ARCS:,} edges", at)
    for table, many in (("annotations", annotations), ("copy", copies)):
        if len(many) > MOST_ENDS:
            raise document.error(f"more than {MOST_ENDS} of {table}", (table, 0))
    if not edges:
        raise document.error(
            "the alphabet has no edges", hint="define an edge as a table [[edge]] with name, relation and ends"
        )
    edges += [Edge(kind, "copy", ("r", "w"), moved=True) for kind, c in copies.items() if c.source != "register"]
    arcs: list[Arc] = []
    for edge in edges:
        arcs += _arcs(edge, ends, copies)
        if len(arcs) > MOST_ARCS:
            raise document.error(f"the edges connect more than {MOST_ARCS:,} pairs of ends")
    return Alphabet(name, annotations, copies, tuple(arcs), tuple(dict.fromkeys(sizes)))


def _named(document: Document, name: str, at: Row, key: str = "name") -> None:
    if NAME.fullmatch(name) is None:
        raise document.error(f"{name[:40]!r} is not a name of letters, digits, dots, + and _", at, key)


def _rows(document: Document, table: str) -> Iterator[tuple[dict[str, Any], Row]]:
    rows = document.data.get(table, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise document.error(f"{table} is not a list of tables", key=table, hint=f"write [[{table}]] above each")
    return ((row, (table, number)) for number, row in enumerate(rows))


def _field(document: Document, row: dict[str, Any], key: str, kind: object, default: Any, at: Row = ("", 0)) -> Any:
    """The value of a key, or the default; raises ``InputError`` for a wrong type."""
    value = row.get(key, default)
    if not _is(value, kind):
        raise document.error(f"{key} is not {KINDS[kind]}", at, key)
    return value


KINDS: dict[object, str] = {
    str: "a text",
    bool: "true or false",
    list[str]: "a list of texts",
    list[int]: "a list of numbers",
    dict[str, str]: "a table of texts",
    dict[str, list[str]]: "a table of lists of texts",
}


def _is(value: object, kind: Any) -> bool:
    inner = get_args(kind)
    if not inner:
        return type(value) is kind
    several = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, get_origin(kind)) and all(_is(each, inner[-1]) for each in several)


def _needs(document: Document, row: dict[str, Any], keys: Iterable[str], at: Row) -> None:
    if missing := [key for key in keys if key not in row]:
        raise document.error(f"[[{at[0]}]] needs {', '.join(missing)}", at)


def _copy(document: Document, row: dict[str, Any], at: Row) -> CopyKind:
    document.refuse_unknown_keys(row, tuple(f.name for f in fields(CopyKind)), at)
    _needs(document, row, (f.name for f in fields(CopyKind) if f.default is MISSING), at)
    for key in row:
        _field(document, row, key, bool if key in ("expect", "most") else str, "", at)
    kind = CopyKind(**row)
    _named(document, kind.name, at)
    known = {"source": SPACES, "target": SPACES[:3], "signal": SIGNALS, "map": ("", "source", "target")}
    for key, values in known.items():
        if getattr(kind, key) not in values:
            hint = f"it must be {join_alternatives(tuple(filter(None, values)))}"
            raise document.error(f"invalid {key} {getattr(kind, key)[:40]!r} of a copy", at, key, hint)
    if kind.map and getattr(kind, kind.map) == "register":
        raise document.error("a register cannot have a tensor map", at, "map")
    if (what := find_unknown_placeholder(kind.code)) is not None:
        raise document.error(
            f"unknown placeholder {what}", at, "code", f"the placeholders are {join_alternatives(NAMES)}, in braces"
        )
    return kind


def _edges(document: Document, row: dict[str, Any], at: Row) -> list[Edge]:
    document.refuse_unknown_keys(row, ("name", "relation", "ends", "far", "moved", "path", "signals"), at)
    _needs(document, row, ("name", "relation", "ends"), at)
    name, relation = (_field(document, row, key, str, "", at) for key in ("name", "relation"))
    _named(document, name, at)
    if relation not in RELATIONS[:4]:
        raise document.error(f"the relation of an edge must be rf, fr, co or po, not {relation[:40]}", at, "relation")
    path, signals = (tuple(_field(document, row, key, list[str], [], at)) for key in ("path", "signals"))
    if sum(step in HANDOVERS for step in path) > 1:
        raise document.error(f"{name} has more than one handover", at, "path")
    handover = next((HANDOVERS[s] for s in path if s in HANDOVERS), "")
    far = row.get("far", handover or "")
    moved = row.get("moved", [True] if relation == "po" else [False])
    out = []
    for pair in dict.fromkeys(_field(document, row, "ends", list[str], [], at)):
        if len(pair) != 2 or any(e not in (*THREAD_ENDS, *COPY_ENDS) for e in pair):
            raise document.error(f"the ends {pair[:40]} of {name} are not two of R W r w", at, "ends")
        if "issue" in path and pair[1] not in COPY_ENDS:
            raise document.error(
                f"{name} issues the copy at its target, but the target of {pair} is not a copy", at, "ends"
            )
        if any(step.startswith("wait") for step in path) and pair[0] not in COPY_ENDS:
            raise document.error(
                f"{name} waits for the copy at its source, but the source of {pair} is not a copy", at, "ends"
            )
        for where in _each(moved):
            if not isinstance(where, bool):
                raise document.error("moved must be true or false", at, "moved")
            for distance in _each(far):
                if distance not in ("", *DISTANCES):
                    hint = f"it must be {join_alternatives(DISTANCES)}, or empty within one thread"
                    shown = f" {distance[:40]}" if isinstance(distance, str) else ""
                    raise document.error(f"invalid distance{shown} of {name}", at, "far", hint)
                called = f"{name}.{distance}" if relation == "po" and distance and distance != handover else name
                out.append(Edge(called, relation, (pair[0], pair[1]), distance, where, path, signals))
    return out


def _each(value: Any) -> list[Any]:
    """The distinct values of a list, or a single value; invalid values are returned unchanged."""
    if not isinstance(value, list):
        return [value]
    plain = [each for each in value if isinstance(each, str | bool)]
    return list(dict.fromkeys(plain)) if len(plain) == len(value) else value


def _arcs(edge: Edge, ends: dict[str, list[str]], copies: dict[str, CopyKind]) -> list[Arc]:
    def found(kind: str) -> list[End]:
        if kind in THREAD_ENDS:
            return [End(kind, note) for note in ends[kind]]
        return [End(kind, c.name) for c in copies.values() if kind == "w" or c.source != "register"]

    out = []
    for source in found(edge.ends[0]):
        for target in found(edge.ends[1]):
            if edge.relation == "copy" and not source.note == target.note == edge.name:
                continue
            if source.copied and not _waits(edge, copies[source.note]):
                continue
            if "data" in edge.path and target.kind != "W":
                continue
            out.append(Arc(edge, source, target))
    return out


def _waits(edge: Edge, kind: CopyKind) -> bool:
    """Whether the waits of an edge exist for the copy at its source."""
    if edge.signals and kind.signal not in edge.signals:
        return False
    for step in edge.path:
        if step in ("wait.relaxed", "wait.elsewhere") and kind.signal != "mbarrier":
            return False
        if step == "wait.read" and kind.signal != "bulk":
            return False
        if step == "wait" and kind.target == "peer":
            return False  # the issuing CTA cannot wait on an mbarrier of another CTA
    return True
