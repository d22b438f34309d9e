"""The base relations of cat that are determined by the paths alone, one definition each.

A relation is given by its predicate on two events; one that relates events which share something by what they share.
Most concern few events: ``first`` and ``second`` say which may stand on either side, so that a structure is searched
only there. The names are documented in ``mcheck.cat.names``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.events.event import Event
from mcheck.events.structure import INITIAL_SETS, Node, Structure
from mcheck.ir import scopes
from mcheck.ir.memory import MBARRIER_BYTES, SHARED_BASE, SHARED_WINDOW

Predicate = Callable[[Structure, Node, Node], bool]
Side = Callable[[Event, Node], bool]
Key = Callable[[Structure, Node], Hashable]


def _any(_event: Event, _node: Node) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Relation:
    """A base relation: the pairs for which ``predicate`` holds; initial writes are in no pair."""

    predicate: Predicate
    first: Side = _any
    second: Side = _any


RELATIONS: dict[str, Relation] = {}
SHARED: dict[str, Key] = {}
"""Relations between all events with the same key; an event whose key is ``None`` is in no pair."""


def relation(name: str, *, first: Side = _any, second: Side = _any) -> Callable[[Predicate], Predicate]:
    """Register the predicate of a base relation between events of threads."""

    def register(predicate: Predicate) -> Predicate:
        RELATIONS[name] = Relation(predicate, first, second)
        return predicate

    return register


def shared(name: str) -> Callable[[Key], Key]:
    """Register a base relation that is an equivalence: the key that related events share."""

    def register(key: Key) -> Key:
        SHARED[name] = key
        return key

    return register


def event_of(node: Node) -> Event:
    """The event of a node that is not an initial write."""
    assert node.source is not None
    return node.source


def _ordered(e: Event, _: Node) -> bool:
    return e.order is not None


def _touches(_: Event, x: Node) -> bool:
    return x.size > 0


def _on_object(e: Event, x: Node) -> bool:
    return x.size > 0 or e.mbarrier is not None


@shared("id")
def identity(s: Structure, x: Node) -> Hashable:
    return x.index


@relation("po", first=_ordered, second=_ordered)
def program_order(s: Structure, a: Node, b: Node) -> bool:
    """Same thread, earlier; asynchronous operations are not members (PTX ISA 8.9.1.1)."""
    return a.thread == b.thread and (event_of(a).order or 0) < (event_of(b).order or 0)


@shared("int")
def thread(s: Structure, x: Node) -> Hashable:
    return x.thread


@shared("loc")
def location(s: Structure, x: Node) -> Hashable:
    """The same physical bytes (PTX ISA 8.2.1)."""
    return x.address if x.size else None


@shared("vloc")
def virtual_location(s: Structure, x: Node) -> Hashable:
    """The same bytes through the same virtual address (PTX ISA 8.2.2); initial writes have none."""
    return (x.address, x.source.virtual + x.offset) if x.source is not None and x.size else None


@shared("overlap")
def overlap(s: Structure, x: Node) -> Hashable:
    """The accesses share bytes; on chunks that is the same location."""
    return location(s, x)


@shared("complete-overlap")
def footprint(s: Structure, x: Node) -> Hashable:
    """The whole accesses, not only these chunks of them, cover the same bytes (PTX ISA 8.2.1)."""
    return (x.source.address, x.source.size) if x.source is not None and x.size else None


@shared("si")
def instruction(s: Structure, x: Node) -> Hashable:
    return (x.thread, x.source.instruction) if x.source is not None else None


@shared("same-access")
def access(s: Structure, x: Node) -> Hashable:
    """Chunks of one scalar access."""
    return x.source.uid if x.source is not None else None


@relation("rmw", second=lambda e, _: e.rmw is not None)
def read_modify_write(s: Structure, a: Node, b: Node) -> bool:
    return event_of(b).rmw == event_of(a).uid and a.address == b.address


@relation("data", second=lambda e, _: bool(e.data))
def data_dependency(s: Structure, a: Node, b: Node) -> bool:
    return event_of(a).uid in event_of(b).data


@relation("addr", second=lambda e, _: bool(e.addr))
def address_dependency(s: Structure, a: Node, b: Node) -> bool:
    return event_of(a).uid in event_of(b).addr


@relation("ctrl", second=lambda e, _: bool(e.ctrl))
def control_dependency(s: Structure, a: Node, b: Node) -> bool:
    return event_of(a).uid in event_of(b).ctrl


def _look(e: Event, _: Node) -> bool:
    return e.mbarrier is not None and e.mbarrier.kind == "wait"


@relation("regardless", first=_look, second=_ordered)
def independent_of_wait(s: Structure, a: Node, b: Node) -> bool:
    """An mbarrier wait and later operations of its thread that do not depend on its result."""
    look, behind = event_of(a), event_of(b)
    return program_order(s, a, b) and look.uid not in behind.ctrl | behind.addr | behind.data


def _scoped(e: Event, _: Node) -> bool:
    return e.scope is not None


def reach(s: Structure, x: Node, scope: str) -> Hashable:
    """The key that threads in one scope instance share (PTX ISA 8.5)."""
    return scopes.scope_instance(s.thread(x).place.cta, scope)


@relation("sr", first=_scoped, second=_scoped)
def scopes_include_each_other(s: Structure, a: Node, b: Node) -> bool:
    return all(reach(s, a, scope) == reach(s, b, scope) for scope in {event_of(a).scope, event_of(b).scope} if scope)


def _in(scope: str) -> Key:
    return lambda s, x: reach(s, x, scope) if x.source is not None else None


SHARED["scta"] = _in("cta")
SHARED["scluster"] = _in("cluster")
SHARED["sgpu"] = _in("gpu")


@shared("sblock")
def block(s: Structure, x: Node) -> Hashable:
    """The accesses count for the same CTA: an asynchronous access to shared memory counts for the owner of its
    bytes.
    """
    return x.source.block if x.source is not None else None


@relation("issue", second=lambda e, _: e.issue is not None)
def issue_order(s: Structure, a: Node, b: Node) -> bool:
    """From the instruction to the memory operations and the completion signal of its asynchronous operation; for wgmma
    from the wgmma.fence of any lane of the warp, or from a fence.proxy.async of the lane itself (9.7.15.7.1).
    """
    first, second = event_of(a), event_of(b)
    assert second.issue is not None
    if Tag.WGFENCE in first.tags:
        by, of = s.thread(a), s.thread(b)
        together = Tag.WGMMA in second.tags and (
            by.index == of.index if Tag.PROXYFENCE in first.tags else by.place.own_warp == of.place.own_warp
        )
        return together and s.turns[first.uid] <= s.turns[second.uid]
    return second.issue == first.uid and Tag.WGMMA not in second.tags


@relation("covers", first=lambda e, _: Tag.F in e.tags, second=_on_object)
def fence_coverage(s: Structure, a: Node, b: Node) -> bool:
    """A proxy fence, or a fence restricted to a space, and an operation on an object that it covers (open-questions
    Q14); fence.mbarrier_init covers the mbarrier.init of its thread.
    """
    fence, operation = event_of(a), event_of(b)
    step = operation.mbarrier
    if Tag.MBARRIER_INIT_FENCE in fence.tags:
        return step is not None and step.kind == "init" and a.thread == b.thread
    address, size = (b.address, b.size) if step is None else (step.address, MBARRIER_BYTES)
    if fence.covered is not None:
        start, length = fence.covered
        return start < address + size and address < start + length
    if not fence.spaces:
        return True
    if Tag.GLOBAL in operation.tags:
        return "global" in fence.spaces
    if Tag.TENSOR in operation.tags:
        return "tensor" in fence.spaces
    if Tag.SHARED not in operation.tags and step is None:
        return False
    if "shared::cluster" in fence.spaces or "shared::cluster::read" in fence.spaces:
        return True
    return "shared::cta" in fence.spaces and _owner(address) == s.thread(a).place.cta.number


def _owner(address: int) -> int:
    """The CTA whose shared memory has the address."""
    return (address - SHARED_BASE) // SHARED_WINDOW


@relation("object-access", first=lambda e, _: e.mbarrier is not None and e.mbarrier.kind == "init", second=_touches)
def accesses_object(s: Structure, a: Node, b: Node) -> bool:
    """mbarrier.init of an object and an ordinary access to its eight bytes."""
    step = event_of(a).mbarrier
    return step is not None and step.address < b.address + b.size and b.address < step.address + MBARRIER_BYTES


@relation("outlived", second=lambda e, _: Tag.EXIT in e.tags)
def access_outliving_cta(s: Structure, a: Node, b: Node) -> bool:
    """An access to the shared memory of another CTA, or an operation on its mbarrier, and the exits of that CTA's
    threads, if all of them exit.
    """
    owner = s.thread(b).place.cta.number
    if owner != _foreign_owner(s, a):
        return False
    return all(p.end == "end" for p in s.paths if s.program.threads[p.thread].place.cta.number == owner)


def _outlives(e: Event, _: object) -> bool:
    return e.tags >= {Tag.ASYNC, Tag.SHARED} and not e.tags.isdisjoint((Tag.W, Tag.SIGNALLED))


@relation("own-outlived", first=_outlives, second=lambda e, _: Tag.EXIT in e.tags)
def own_access_outliving_cta(s: Structure, a: Node, b: Node) -> bool:
    """What a bulk copy writes to the shared memory of the issuing CTA, or reads there until its mbarrier tells, and the
    exits of the CTA's threads, if all exit. (Where a group tells, the path of the thread does: ``State.unfinished``.)
    """
    owner = s.thread(b).place.cta.number
    if not owner == s.thread(a).place.cta.number == _owner(a.address):
        return False
    return all(p.end == "end" for p in s.paths if s.program.threads[p.thread].place.cta.number == owner)


@relation("unborn", first=lambda e, _: Tag.START in e.tags)
def access_before_start(s: Structure, a: Node, b: Node) -> bool:
    """The starts of a CTA's threads and an access to its shared memory, or its mbarriers, from another CTA."""
    return s.thread(a).place.cta.number == _foreign_owner(s, b)


def _foreign_owner(s: Structure, node: Node) -> int | None:
    """The CTA whose shared memory or mbarrier an event of another CTA uses, if it does; signals are left out."""
    event = event_of(node)
    if event.mbarrier is not None:
        address = event.mbarrier.address if event.order is not None else 0
    else:
        address = node.address if Tag.SHARED in event.tags else 0
    owner = _owner(address)
    return owner if address and owner != s.thread(node).place.cta.number else None


@shared("mbarrier-object")
def mbarrier_object(s: Structure, x: Node) -> Hashable:
    """Two operations on one mbarrier object."""
    return x.source.mbarrier.address if x.source is not None and x.source.mbarrier is not None else None


def static_rows(s: Structure, name: str) -> list[int]:
    """A static base relation or set as rows of bits, computed once."""
    found = s.static_rows.get(name)
    if found is None:
        found = s.static_rows[name] = relation_rows(s, name)
    return found


def relation_rows(s: Structure, name: str) -> list[int]:
    """A static base relation or set as rows of bits."""
    if name == "ext":  # another thread; the initial writes are one
        full = (1 << s.size) - 1
        return [full & ~row for row in relation_rows(s, "int")]
    key = SHARED.get(name)
    if key is not None:
        return _sharing([key(s, x) for x in s.nodes])
    found = RELATIONS.get(name)
    if found is None:
        return _set_rows(s, name)
    out = [0] * s.size
    seconds = [b for b in s.nodes if b.source is not None and found.second(b.source, b)]
    for a in s.nodes if seconds else ():
        if a.source is not None and found.first(a.source, a):
            for b in seconds:
                if found.predicate(s, a, b):
                    out[a.index] |= 1 << b.index
    return out


def _sharing(keys: list[Hashable]) -> list[int]:
    """The rows of the relation between all events with the same key."""
    members: dict[Hashable, int] = {}
    for k, key in enumerate(keys):
        if key is not None:
            members[key] = members.get(key, 0) | 1 << k
    return [0 if key is None else members[key] for key in keys]


def _set_rows(s: Structure, name: str) -> list[int]:
    """A base set on the diagonal."""
    if name == "_":
        return [1 << x.index for x in s.nodes]
    if name == "STRONG":
        tags = [x.source.tags if x.source is not None else frozenset[Tag]() for x in s.nodes]
        return [1 << k if t & STRONG and Tag.CLUSTERBAR not in t else 0 for k, t in enumerate(tags)]
    if name in WIDTHS:
        scope = WIDTHS[name]
        return [1 << x.index if x.source is not None and x.source.scope == scope else 0 for x in s.nodes]
    initial = name in INITIAL_SETS
    return [1 << x.index if (initial if x.source is None else name in x.source.tags) else 0 for x in s.nodes]


STRONG = frozenset({Tag.RLX, Tag.ACQ, Tag.REL, Tag.ACQ_REL, Tag.SC})
WIDTHS = {"CTA": "cta", "CLUSTER": "cluster", "GPU": "gpu", "SYS": "sys"}
