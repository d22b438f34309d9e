"""Alphabets: the ends of edges, the edges, and the kinds of asynchronous copies, as people write them in TOML.

An end is an access of a thread, ``R`` or ``W``, with an annotation (``rlx``, ``acq``), or the reading ``r`` or the
writing ``w`` of an asynchronous copy, with its kind. An edge leads from an end to an end:

* ``rf``, ``fr``, ``co`` between accesses to one location, in one thread (a copy counts for its issuer) or two;
* ``po``: what is between two accesses, as a path of steps. A step is an instruction, or one of ``STEPS``;
* ``copy``: from the reading of a copy to its writing.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcheck.errors import InputError
from mcheck.resources import litmus

THREAD_ENDS = ("R", "W")
COPY_ENDS = ("r", "w")
RELATIONS = ("rf", "fr", "co", "po", "copy")
DISTANCES = ("cta", "cluster", "gpu", "sys")
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
"""Steps that go on in another thread, and how far away it is (``None``: as the edge says)."""

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
    """An asynchronous copy: ``{dst}``, ``{src}`` and ``{bar}`` stand for its operands in ``code``.

    ``source`` and ``target`` are ``global``, ``shared``, ``peer`` (the shared memory of another CTA of the cluster) or
    ``register``; ``signal`` is ``mbarrier``, ``bulk`` or ``cp.async``; ``expect``: it announces its bytes; ``most``: it
    leaves the larger of the old and the new value.
    """

    name: str
    code: str
    source: str
    target: str
    signal: str
    expect: bool = True
    most: bool = False
    map: str = ""  # source or target: of which a tensor map is made, {map}


@dataclass(frozen=True, slots=True)
class End:
    """``kind`` is one of ``R W r w``; ``note`` is an annotation or the kind of the copy."""

    kind: str
    note: str

    @property
    def copied(self) -> bool:
        """Whether it belongs to an asynchronous copy."""
        return self.kind in COPY_ENDS

    @property
    def writes(self) -> bool:
        """Whether it is a write."""
        return self.kind in ("W", "w")


@dataclass(frozen=True, slots=True)
class Edge:
    """``far`` is the distance of the threads of its ends, or empty if they are in one thread.

    ``moved``: its ends are at different locations.
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
        """Its name as diy would spell it: ``PodRW``, ``Rfe``."""
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
        """Whether it is rf, fr or co."""
        return self.edge.relation in ("rf", "fr", "co")


@dataclass(frozen=True, slots=True)
class Alphabet:
    """All arcs that cycles are made of."""

    name: str
    annotations: dict[str, str]
    copies: dict[str, CopyKind]
    arcs: tuple[Arc, ...]
    sizes: tuple[int, ...] = (4,)
    spaces: tuple[str, ...] = field(default=("global",))


def folder() -> Path:
    """Where the shipped alphabets lie."""
    return Path(litmus()) / "generate"


def names() -> list[str]:
    """The shipped alphabets."""
    return sorted(path.stem for path in folder().glob("*.toml"))


def load(name: str) -> Alphabet:
    """The alphabet of a file, or the shipped one of this name."""
    path = Path(name) if name.endswith(".toml") else folder() / f"{name}.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        if name.endswith(".toml"):
            raise InputError(f"cannot read {name}: {error.strerror}") from None
        raise InputError(f"there is no alphabet {name}", hint=f"there are {', '.join(names())}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    try:
        return _alphabet(path.stem, data)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: a field is missing or unknown: {error}") from None


def _alphabet(name: str, data: dict[str, Any]) -> Alphabet:
    annotations = dict(data.get("annotations", {"rlx": "relaxed.gpu"}))
    ends = {kind: list(data.get("ends", {}).get(kind, ["rlx"])) for kind in THREAD_ENDS}
    for note in (*ends["R"], *ends["W"]):
        if note not in annotations:
            raise InputError(f"{name}: the annotation {note} is not explained")
    copies = {row["name"]: CopyKind(**row) for row in data.get("copy", ())}
    edges: list[Edge] = []
    for row in data.get("edge", ()):
        edges += _edges(name, row)
    edges += [Edge(kind, "copy", ("r", "w"), moved=True) for kind, c in copies.items() if c.source != "register"]
    arcs = [arc for edge in edges for arc in _arcs(edge, ends, copies)]
    return Alphabet(name, annotations, copies, tuple(arcs), tuple(data.get("sizes", (4,))))


def _edges(alphabet: str, row: dict[str, Any]) -> list[Edge]:
    relation = row["relation"]
    if relation not in RELATIONS[:4]:
        raise InputError(f"{alphabet}: an edge is rf, fr, co or po, not {relation}")
    known = {"name", "relation", "ends", "far", "moved", "path", "signals"}
    if unknown := set(row) - known:
        raise InputError(f"{alphabet}: edges have no {', '.join(sorted(unknown))}")
    path = tuple(row.get("path", ()))
    if sum(step in HANDOVERS for step in path) > 1:
        raise InputError(f"{alphabet}: {row['name']} hands over more than once")
    handover = next((HANDOVERS[s] for s in path if s in HANDOVERS), "")
    far = row.get("far", handover or "")
    fars = far if isinstance(far, list) else [far]
    moved = row.get("moved", [True] if relation == "po" else [False])
    out = []
    for pair in row["ends"]:
        if len(pair) != 2 or any(e not in (*THREAD_ENDS, *COPY_ENDS) for e in pair):
            raise InputError(f"{alphabet}: the ends {pair} of {row['name']} are not two of R W r w")
        for where in moved if isinstance(moved, list) else [moved]:
            for distance in fars:
                if distance not in ("", *DISTANCES):
                    raise InputError(f"{alphabet}: the distance {distance} of {row['name']}")
                name = row["name"]
                if relation == "po" and distance and distance != handover:
                    name = f"{name}.{distance}"
                signals = tuple(row.get("signals", ()))
                out.append(Edge(name, relation, (pair[0], pair[1]), distance, where, path, signals))
    return out


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
    """Whether the waits of an edge exist for the copy that it comes from."""
    if edge.signals and kind.signal not in edge.signals:
        return False
    for step in edge.path:
        if step in ("wait.relaxed", "wait.elsewhere") and kind.signal != "mbarrier":
            return False
        if step == "wait.read" and kind.signal != "bulk":
            return False
        if step == "wait" and kind.target == "peer":
            return False  # nobody in the issuing CTA can wait for an mbarrier of another CTA
    return True
