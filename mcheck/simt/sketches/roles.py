"""Roles: grouping of the lanes of an executed cluster by equal code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass, replace
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.simt.sketches.formulas import Number, fit_lanes
from mcheck.simt.sketches.objects import Declarations
from mcheck.simt.sketches.rolling import Line, Node, When, merge_codes, roll_loops
from mcheck.simt.sketches.spelling import Speller, Statement

WARP = "%warpid"
RANK = "%cluster_ctarank"
CONVERGENT = (ops.Barrier, ops.ClusterBarrier, ops.WarpSync, ops.Collective, ops.Wgmma, ops.WgmmaFence)
"""Operations at which lanes of a warp synchronise and must execute one statement."""


@dataclass(frozen=True, slots=True)
class Role:
    """The code of these lanes of these warps of the CTAs of these ranks."""

    name: str
    ranks: tuple[int, ...]
    warps: tuple[int, ...]
    lanes: tuple[int, ...]
    code: tuple[Node, ...]


def find_roles(program: Program, declared: Declarations) -> list[Role]:
    """Find all roles, in the order of their first threads; raises ``Unsupported`` for what a sketch cannot express."""
    warps: dict[tuple[int, int], list[Thread]] = {}
    for thread in program.threads:
        warps.setdefault((thread.place.cta.rank, thread.place.warp), []).append(thread)
    found: list[Role] = []
    for (rank, warp), threads in warps.items():
        lanes = tuple(sorted(t.place.lane for t in threads))
        does = [op for code in {id(t.code): t.code for t in threads}.values() for op in code]
        found.append(Role(_role_name(does), (rank,), (warp,), lanes, _warp_code(threads, declared)))
    found = _join_roles(found, WARP)
    found = _join_roles(found, RANK)
    return _name_roles([Role(r.name, r.ranks, r.warps, r.lanes, roll_loops(r.code)) for r in found])


# --- the lanes of a warp ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """A statement that classes of lanes share: the lanes of each, and the statement with its numbers."""

    shape: object
    members: tuple[tuple[tuple[int, ...], Statement], ...]
    meets: bool

    @property
    def lanes(self) -> tuple[int, ...]:
        """All lanes of the item."""
        return tuple(sorted(lane for lanes, _ in self.members for lane in lanes))


def _warp_code(threads: Sequence[Thread], declared: Declarations) -> tuple[Node, ...]:
    """The code of a warp; statements of some lanes only are in an ``if``, so that all synchronise at one statement."""
    alike: dict[tuple[int, ...], list[Thread]] = {}
    for thread in threads:
        alike.setdefault(tuple(map(id, thread.code)), []).append(thread)
    code: list[Item] = []
    for same in sorted(alike.values(), key=len, reverse=True):
        lanes = tuple(t.place.lane for t in same)
        speller = Speller(declared, same[0].place.cta, lanes)
        own = [_item(lanes, s, isinstance(op, CONVERGENT)) for op in same[0].code for s in speller.statements(op)]
        code = _weave(code, own) if code else own
    everyone = tuple(sorted(t.place.lane for t in threads))
    out: list[Node] = []
    known: Known = {}
    for lanes, items in groupby(_split_items(code, known), key=lambda item: item.lanes):
        lines = tuple(_line(item, known) for item in items)
        out += lines if lanes == everyone else [When(lanes, roll_loops(lines))]
    return tuple(out)


def _item(lanes: tuple[int, ...], statement: Statement, meets: bool) -> Item:
    span = statement.span
    return Item((statement.text, span and (span.line, span.column)), ((lanes, statement),), meets)


def _weave(one: list[Item], other: list[Item]) -> list[Item]:
    """Merge two codes, with common statements once: first where lanes synchronise, then in between."""
    out: list[Item] = []
    i = k = 0
    meetings = [[n for n, item in enumerate(items) if item.meets] for items in (one, other)]
    for a, b in _common([one[n] for n in meetings[0]], [other[n] for n in meetings[1]]):
        at, there = meetings[0][a], meetings[1][b]
        out += _between(one[i:at], other[k:there])
        out.append(_merge_items(one[at], other[there]))
        i, k = at + 1, there + 1
    return out + _between(one[i:], other[k:])


def _between(one: list[Item], other: list[Item]) -> list[Item]:
    out: list[Item] = []
    i = k = 0
    for a, b in _common(one, other):
        out += [*one[i:a], *other[k:b], _merge_items(one[a], other[b])]
        i, k = a + 1, b + 1
    return [*out, *one[i:], *other[k:]]


def _merge_items(one: Item, other: Item) -> Item:
    return Item(one.shape, one.members + other.members, one.meets)


def _common(one: list[Item], other: list[Item]) -> Iterator[tuple[int, int]]:
    """The indices of a common subsequence of both."""
    numbers: dict[object, int] = {}
    a, b = ([numbers.setdefault(item.shape, len(numbers)) for item in items] for items in (one, other))
    for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
        yield from ((block.a + k, block.b + k) for k in range(block.size))


Known = dict[tuple[tuple[int, ...], tuple[int, ...]], "Number | None"]


def _split_items(code: Iterable[Item], known: Known) -> Iterator[Item]:
    """The items; those whose numbers follow no pattern over all lanes are split by class, or into lanes that do."""
    for item in code:
        if None not in _numbers(item, known):
            yield item
            continue
        for lanes, statement in item.members:
            one = Item(item.shape, ((lanes, statement),), item.meets)
            if None not in _numbers(one, known) or item.meets:
                yield one
            else:
                yield from _split_runs(one, known)


def _split_runs(item: Item, known: Known) -> Iterator[Item]:
    """Split an item of one class where the pattern of its numbers ends."""
    ((lanes, statement),) = item.members
    start = 0
    while start < len(lanes):
        end, best = start + 1, None
        while end <= len(lanes):
            part = replace(statement, columns=tuple(column[start:end] for column in statement.columns))
            one = Item(item.shape, ((lanes[start:end], part),), item.meets)
            if None in _numbers(one, known):
                break
            best, end = one, end + 1
        assert best is not None, "one lane is a pattern"
        yield best
        start += len(best.lanes)


def _numbers(item: Item, known: Known) -> list[Number | None]:
    lanes = [lane for member, _ in item.members for lane in member]
    order = sorted(range(len(lanes)), key=lanes.__getitem__)
    ordered = tuple(lanes[k] for k in order)
    out: list[Number | None] = []
    for columns in zip(*(s.columns for _, s in item.members), strict=True):
        flat = [v for column in columns for v in column]
        key = tuple(flat[k] for k in order), ordered
        if key not in known:
            known[key] = fit_lanes(key[0], ordered)
        out.append(known[key])
    return out


def _line(item: Item, known: Known) -> Line:
    statement = item.members[0][1]
    numbers = _numbers(item, known)
    if None in numbers:
        where = "" if statement.span is None else f"line {statement.span.line}: "
        raise Unsupported(f"{where}a sketch cannot say what the lanes access: their addresses follow no pattern")
    return Line(statement.text, tuple(n for n in numbers if n is not None), statement.span)


# --- warps and CTAs ---------------------------------------------------------------------------------------------


def _join_roles(found: Sequence[Role], var: str) -> list[Role]:
    """Merge roles of several warps, or of several CTAs, where their code agrees."""
    groups: dict[object, list[Role]] = {}
    for role in found:
        others = role.ranks if var == WARP else role.warps
        groups.setdefault((role.lanes, others, tuple(n.shape for n in role.code)), []).append(role)
    out: list[Role] = []
    for members in groups.values():
        exact: dict[tuple[Node, ...], list[Role]] = {}
        for role in members:
            exact.setdefault(role.code, []).append(role)
        places = [(r.warps if var == WARP else r.ranks)[0] for r in members]
        code = merge_codes([r.code for r in members], var, places) if len(members) > 1 else members[0].code
        if code is not None:
            out.append(_over(members, var, code))
        else:
            out += [_over(same, var, code) for code, same in exact.items()]
    return out


def _over(members: Sequence[Role], var: str, code: tuple[Node, ...]) -> Role:
    first = members[0]
    if var == WARP:
        return Role(first.name, first.ranks, tuple(w for r in members for w in r.warps), first.lanes, code)
    return Role(first.name, tuple(k for r in members for k in r.ranks), first.warps, first.lanes, code)


# --- names ------------------------------------------------------------------------------------------------------


def _role_name(code: Sequence[Op]) -> str:
    """The name of a role by its operations."""
    inner = [ops.performed_operation(op) for op in code]
    if any(isinstance(op, ops.BulkCopy | ops.TensorCopy) and op.mbar is not None for op in inner):
        return "producer"
    if any(isinstance(op, ops.Wgmma | ops.MbarrierWait) for op in inner):
        return "consumer"
    if any(isinstance(op, ops.BulkCopy | ops.TensorCopy) for op in inner):
        return "writer"
    return "worker" if any(isinstance(op, ops.Load | ops.Store | ops.CpAsync | ops.Atomic) for op in inner) else "rest"


def _name_roles(found: Sequence[Role]) -> list[Role]:
    count: dict[str, int] = {}
    for role in found:
        count[role.name] = count.get(role.name, 0) + 1
    out: list[Role] = []
    taken: dict[str, int] = {}
    for role in sorted(found, key=lambda r: (r.ranks, r.warps, r.lanes)):
        number = taken[role.name] = taken.get(role.name, 0) + 1
        name = role.name if count[role.name] == 1 else f"{role.name}{number}"
        out.append(Role(name, role.ranks, role.warps, role.lanes, role.code))
    return out
