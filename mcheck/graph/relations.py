"""The base relations of cat that the paths alone decide, one predicate each.

A relation is the pairs of events for which its predicate holds. The names are documented in ``mcheck.cat.names``.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.graph.event import Event
from mcheck.graph.structure import Node, Structure
from mcheck.program.memory import SHARED_BASE, SHARED_WINDOW

Predicate = Callable[[Structure, Node, Node], bool]
RELATIONS: dict[str, Predicate] = {}
WIDTH = {"cta": 0, "cluster": 1, "gpu": 2, "sys": 3}


def relation(name: str) -> Callable[[Predicate], Predicate]:
    """Registers the predicate of a base relation."""

    def register(predicate: Predicate) -> Predicate:
        RELATIONS[name] = predicate
        return predicate

    return register


def _both(a: Node, b: Node) -> tuple[Event, Event] | None:
    """The source events, unless one is an initial write."""
    return None if a.source is None or b.source is None else (a.source, b.source)


@relation("id")
def same(s: Structure, a: Node, b: Node) -> bool:
    return a.index == b.index


@relation("po")
def program_order(s: Structure, a: Node, b: Node) -> bool:
    """Same thread, earlier; asynchronous operations are not members (PTX ISA 8.9.1.1)."""
    e = _both(a, b)
    return (
        e is not None
        and a.thread == b.thread
        and e[0].order is not None
        and e[1].order is not None
        and e[0].order < e[1].order
    )


@relation("int")
def internal(s: Structure, a: Node, b: Node) -> bool:
    return a.thread == b.thread


@relation("ext")
def external(s: Structure, a: Node, b: Node) -> bool:
    return a.thread != b.thread


@relation("loc")
def same_location(s: Structure, a: Node, b: Node) -> bool:
    """The same physical bytes (PTX ISA 8.2.1)."""
    return a.size > 0 and b.size > 0 and a.address == b.address


@relation("vloc")
def same_virtual_location(s: Structure, a: Node, b: Node) -> bool:
    """The same bytes through the same virtual address (PTX ISA 8.2.2); initial writes have none."""
    e = _both(a, b)
    return e is not None and same_location(s, a, b) and e[0].virtual + a.offset == e[1].virtual + b.offset


@relation("overlap")
def overlap(s: Structure, a: Node, b: Node) -> bool:
    """The accesses share bytes; on chunks that is the same location."""
    return same_location(s, a, b)


@relation("complete-overlap")
def complete_overlap(s: Structure, a: Node, b: Node) -> bool:
    """The whole accesses, not only these chunks of them, cover the same bytes (PTX ISA 8.2.1)."""
    e = _both(a, b)
    return e is not None and a.size > 0 and (e[0].address, e[0].size) == (e[1].address, e[1].size)


@relation("si")
def same_instruction(s: Structure, a: Node, b: Node) -> bool:
    e = _both(a, b)
    return e is not None and a.thread == b.thread and e[0].instruction == e[1].instruction


@relation("same-access")
def same_access(s: Structure, a: Node, b: Node) -> bool:
    """Chunks of one scalar access."""
    e = _both(a, b)
    return e is not None and e[0].uid == e[1].uid


@relation("rmw")
def read_modify_write(s: Structure, a: Node, b: Node) -> bool:
    e = _both(a, b)
    return e is not None and e[1].rmw is not None and e[1].rmw == e[0].uid and a.address == b.address


@relation("data")
def data_dependency(s: Structure, a: Node, b: Node) -> bool:
    e = _both(a, b)
    return e is not None and e[0].uid in e[1].data


@relation("addr")
def address_dependency(s: Structure, a: Node, b: Node) -> bool:
    e = _both(a, b)
    return e is not None and e[0].uid in e[1].addr


@relation("ctrl")
def control_dependency(s: Structure, a: Node, b: Node) -> bool:
    e = _both(a, b)
    return e is not None and e[0].uid in e[1].ctrl


def in_scope(s: Structure, a: Node, b: Node, scope: str) -> bool:
    """Whether the scope of a's thread includes b's thread (PTX ISA 8.5)."""
    p, q = s.thread(a).place.cta, s.thread(b).place.cta
    match scope:
        case "cta":
            return p.number == q.number
        case "cluster":
            return (p.gpu, p.cluster) == (q.gpu, q.cluster)
        case "gpu":
            return p.gpu == q.gpu
    return True


@relation("sr")
def scopes_include_each_other(s: Structure, a: Node, b: Node) -> bool:
    e = _both(a, b)
    if e is None or e[0].scope is None or e[1].scope is None:
        return False
    return in_scope(s, a, b, e[0].scope) and in_scope(s, b, a, e[1].scope)


def _same(scope: str) -> Predicate:
    def predicate(s: Structure, a: Node, b: Node) -> bool:
        return _both(a, b) is not None and in_scope(s, a, b, scope)

    return predicate


RELATIONS["scta"] = _same("cta")
RELATIONS["scluster"] = _same("cluster")
RELATIONS["sgpu"] = _same("gpu")


@relation("sblock")
def same_block(s: Structure, a: Node, b: Node) -> bool:
    """The accesses count for the same CTA: an asynchronous access to shared memory counts for the owner of its
    bytes.
    """
    e = _both(a, b)
    return e is not None and e[0].block == e[1].block


@relation("issue")
def issued(s: Structure, a: Node, b: Node) -> bool:
    """From the instruction to the memory operations and the completion signal of its asynchronous operation."""
    e = _both(a, b)
    if e is None:
        return False
    if "WGFENCE" in e[0].tags:
        return (
            "WGMMA" in e[1].tags
            and a.thread == b.thread
            and e[1].issue is not None
            and (e[0].order or 0) < (s.events[e[1].issue].order or 0)
        )
    return e[1].issue is not None and e[1].issue == e[0].uid and "WGMMA" not in e[1].tags


@relation("covers")
def covered(s: Structure, a: Node, b: Node) -> bool:
    """A proxy fence, or a fence restricted to a space, and an access to an object that it covers (open-questions
    Q14).
    """
    e = _both(a, b)
    if e is None or b.size == 0 or "F" not in e[0].tags:
        return False
    fence, access = e
    if fence.covered is not None:
        start, size = fence.covered
        return start < b.address + b.size and b.address < start + size
    if not fence.spaces:
        return True
    if "GLOBAL" in access.tags:
        return "global" in fence.spaces
    if "SHARED" not in access.tags:
        return False
    if "shared::cluster" in fence.spaces or "shared::cluster::read" in fence.spaces:
        return True
    return "shared::cta" in fence.spaces and _owner(s, b) == s.thread(a).place.cta.number


def _owner(s: Structure, b: Node) -> int:
    """The CTA whose shared memory holds the bytes of b."""
    return (b.address - SHARED_BASE) // SHARED_WINDOW


@relation("object-access")
def accesses_object(s: Structure, a: Node, b: Node) -> bool:
    """mbarrier.init of an object and an ordinary access to its eight bytes."""
    e = _both(a, b)
    if e is None or e[0].mbarrier is None or e[0].mbarrier.kind != "init" or not b.size:
        return False
    return e[0].mbarrier.address < b.address + b.size and b.address < e[0].mbarrier.address + 8


@relation("outlived")
def outlived(s: Structure, a: Node, b: Node) -> bool:
    """An access to the shared memory of another CTA, or an operation on its mbarrier, and the exits of that CTA's
    threads.
    """
    e = _both(a, b)
    if e is None or "EXIT" not in e[1].tags:
        return False
    return s.thread(b).place.cta.number == _foreign_owner(s, a)


@relation("unborn")
def unborn(s: Structure, a: Node, b: Node) -> bool:
    """The starts of a CTA's threads and an access to its shared memory, or its mbarriers, from another CTA."""
    e = _both(a, b)
    if e is None or "START" not in e[0].tags:
        return False
    return s.thread(a).place.cta.number == _foreign_owner(s, b)


def _foreign_owner(s: Structure, node: Node) -> int | None:
    """The CTA whose shared memory or mbarrier an event of another CTA uses, if it does; signals are left out."""
    event = node.source
    assert event is not None
    if event.mbarrier is not None:
        address = event.mbarrier.address if event.order is not None else 0
    else:
        address = node.address if "SHARED" in event.tags else 0
    owner = (address - SHARED_BASE) // SHARED_WINDOW
    return owner if address and owner != s.thread(node).place.cta.number else None


@relation("mbarrier-object")
def same_mbarrier(s: Structure, a: Node, b: Node) -> bool:
    """Two operations on one mbarrier object."""
    e = _both(a, b)
    return (
        e is not None
        and e[0].mbarrier is not None
        and e[1].mbarrier is not None
        and e[0].mbarrier.address == e[1].mbarrier.address
    )


def rows(s: Structure, name: str) -> list[int]:
    """A static base relation or set as rows of bits."""
    predicate = RELATIONS.get(name)
    nodes = s.nodes
    if predicate is None:
        return [1 << x.index if _in_set(x, name) else 0 for x in nodes]
    out = []
    for a in nodes:
        row = 0
        for b in nodes:
            if predicate(s, a, b):
                row |= 1 << b.index
        out.append(row)
    return out


def _in_set(x: Node, name: str) -> bool:
    if name == "_":
        return True
    if name == "STRONG":
        tags = x.source.tags if x.source is not None else frozenset[str]()
        return bool(tags & STRONG) and "CLUSTERBAR" not in tags
    if name in WIDTHS:
        return x.source is not None and x.source.scope == WIDTHS[name]
    return x.has(name)


STRONG = frozenset({"RLX", "ACQ", "REL", "ACQ_REL", "SC"})
WIDTHS = {"CTA": "cta", "CLUSTER": "cluster", "GPU": "gpu", "SYS": "sys"}
