"""Whether teams of threads that draw tiles (``mcheck.simt.grid.draws.teams``) keep apart from their first draws on.

Each access of a thread behind the first draw of its team has an owner, that team. No two owners may access the same
bytes unless both only read, or both update one word by atomics whose scope includes both; an mbarrier is written by all
who use it, and a barrier of a CTA belongs to one team. What a thread does before that draw is common to all. It may
read, or write, what others own later, but may not wait for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.launch import Launch
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.ops.operation import mbarrier_of
from mcheck.ir.scopes import SCOPES
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.loop_visits import BeforeStep, statements, with_action
from mcheck.simt.grid.draws.given_draws import GivenDraws, with_rounds
from mcheck.simt.grid.draws.teams import Teams
from mcheck.simt.grid.pairs.global_places import numbers_of
from mcheck.simt.grid.pairs.only_path import follow_only_path
from mcheck.simt.grid.pairs.reduction import NotReducible

OBJECT = 8
"""The bytes of an mbarrier."""
ROW = 16
"""The bytes of a row of a matrix."""
OF_THREAD = (
    ops.Fence, ops.ProxyFence, ops.Commit, ops.WaitGroup, ops.Prefetch, ops.Alu, ops.Label, ops.Exit,
    ops.MbarrierPending,
)  # fmt: skip
"""Operations that touch nothing that threads share."""
MEET = "threads that draw for themselves access the same bytes"
READ, UPDATE, WRITE = range(3)


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes that a thread accesses; ``orders``: by more than a weak access."""

    low: int
    high: int
    kind: int
    orders: bool
    span: Span | None


def check_teams(given: GivenDraws, launch: Launch, teams: Teams, numbers: Iterable[int], limit: Limit) -> None:
    """Check that the teams of a cluster keep apart if each draws one of these numbers of tiles, which may be another
    one for each team. Raises ``NotReducible``.
    """
    if teams.count == 1:
        return
    found = TeamAccesses(teams)
    for number in numbers:
        found.read(given, launch, number, limit)
    found.check_apart()


@dataclass(slots=True)
class TeamAccesses:
    """What the teams of a cluster access, in all of its executions that have been read."""

    teams: Teams
    owned: dict[tuple[int, int, int, int], Span | None] = field(default_factory=dict)
    """By team, kind and bytes."""
    before: dict[tuple[int, int, int], Span | None] = field(default_factory=dict)
    """What may wait, or order, before the first draw: by team and bytes."""
    barriers: dict[tuple[int, Expr | None], set[int]] = field(default_factory=dict)
    """The teams that come to a barrier of a CTA."""
    own_barriers: dict[tuple[int, Expr | None], Span | None] = field(default_factory=dict)
    """The barriers to which threads come behind their first draws."""

    def read(self, given: GivenDraws, launch: Launch, rounds: int, limit: Limit) -> None:
        """Read an execution of the cluster, in which each team draws so many tiles. Raises ``NotReducible``."""
        _, executed, watch = follow_only_path(
            given.module, with_rounds(launch, rounds), limit, lambda: _FirstDraws(launch.entry, given.draws, self.teams)
        )
        for lane in np.flatnonzero(executed.lanes.exists).tolist():
            limit.check()
            begun = watch.begun.get(self.teams.of(lane))
            if begun is None:
                raise NotReducible("a thread that draws nothing is part of no team")
            code = executed.recorded.code[lane]
            self._read_before(code[: begun[lane]], lane)
            self._read_behind(code[begun[lane] :], lane)

    def _read_before(self, code: Sequence[Op], lane: int) -> None:
        team = self.teams.of(lane)
        for op in {id(op): op for op in code}.values():
            inner = performed_operation(op)
            if isinstance(inner, ops.Barrier):
                self.barriers.setdefault((lane // self.teams.width, inner.barrier), set()).add(team)
            if isinstance(inner, ops.MbarrierInit):
                continue
            for touch in _touches(op, lane, strict=False):
                if touch.orders:
                    self.before[team, touch.low, touch.high] = touch.span

    def _read_behind(self, code: Sequence[Op], lane: int) -> None:
        team = self.teams.of(lane)
        for op in {id(op): op for op in code}.values():
            inner = performed_operation(op)
            if isinstance(inner, ops.Barrier) and inner.instance is None and isinstance(inner.barrier, Const):
                key = lane // self.teams.width, inner.barrier
                self.barriers.setdefault(key, set()).add(team)
                self.own_barriers[key] = op.span
                continue
            if isinstance(inner, ops.WarpSync | ops.Collective) and self.teams.lanes % WARP == 0:
                continue
            is_apart = isinstance(inner, ops.Atomic) and inner.scope == SCOPES[0] and self.teams.ctas > 1
            for touch in _touches(op, lane, strict=True):
                kind = WRITE if is_apart else touch.kind  # to teams of other CTAs
                self.owned[team, kind, touch.low, touch.high] = touch.span

    def check_apart(self) -> None:
        """Check that no two teams meet. Raises ``NotReducible``."""
        for key, span in self.own_barriers.items():
            if len(self.barriers[key]) > 1:
                raise NotReducible("threads that draw for themselves meet at this barrier", span)
        by_kind = [sorted((low, high, t) for t, k, low, high in self.owned if k == kind) for kind in range(WRITE + 1)]
        reads, updates, writes = by_kind
        words = sorted({(low, high) for low, high, _ in updates})
        if any(high > low for (_, high), (low, _) in pairwise(words)):
            raise NotReducible("teams update words of different sizes at one place")
        waits = sorted((low, high, t) for t, low, high in self.before)
        for some, others in ((writes, writes), (writes, reads), (writes, updates), (updates, reads)):
            if met := _meeting(some, others):
                raise NotReducible(MEET, self._span(met))
        for some in (writes, updates):
            if met := _meeting(some, waits):
                raise NotReducible("threads may wait for others that draw for themselves", self._span(met))

    def _span(self, met: tuple[int, int]) -> Span | None:
        """Where one of two teams accesses these bytes."""
        low, high = met
        return next((s for (_, _, a, b), s in self.owned.items() if a < high and low < b and s is not None), None)


def _meeting(some: Sequence[tuple[int, int, int]], others: Sequence[tuple[int, int, int]]) -> tuple[int, int] | None:
    """Bytes that two teams have in common, one of these and one of those; all are in order."""
    found = [(low, high, team, 0) for low, high, team in some] + [(low, high, team, 1) for low, high, team in others]
    ends: list[dict[int, int]] = [{}, {}]  # of both, by team, the ends furthest away: of two teams at most
    for low, high, team, side in sorted(found):
        for end, _ in ((e, t) for t, e in ends[1 - side].items() if t != team and e > low):
            return low, min(end, high)
        mine = ends[side]
        mine[team] = max(high, mine.get(team, 0))
        if len(mine) > 2:
            del mine[min(mine, key=lambda t: mine[t])]
    return None


def _touches(op: Op, lane: int, *, strict: bool) -> Iterator[Touch]:
    """What a lane accesses by an operation. Raises ``NotReducible`` if that is not known and ``strict`` wants to know
    it; otherwise accesses that are not known are passed over where their kind can neither wait nor order.
    """
    inner = performed_operation(op)
    waits = inner is not op

    def touch(place: Expr, size: int, kind: int, *, orders: bool = False) -> Touch:
        (low,) = numbers_of(place, (lane % WARP,)).tolist()
        return Touch(low, low + size, kind, orders or waits, op.span)

    match inner:
        case ops.Load() | ops.Store() | ops.Atomic() if inner.proxy == "generic" and inner.multimem is None:
            kind = READ if isinstance(inner, ops.Load) else UPDATE if isinstance(inner, ops.Atomic) else WRITE
            size = type_size(inner.type) * inner.scalar_count
            if isinstance(inner, ops.Load | ops.Store) and inner.matrix_rows:
                size = max(size, ROW)
            yield touch(inner.address, size, kind, orders=inner.sem != "weak")
        case ops.CpAsync():
            (size,) = numbers_of(inner.size, (lane % WARP,)).tolist()
            yield touch(inner.src, size, READ)
            yield touch(inner.dst, size, WRITE)
        case ops.BulkCopy() if inner.multimem is None and inner.cta_mask is None and inner.reduce is None:
            (size,) = numbers_of(inner.size, (lane % WARP,)).tolist()
            yield touch(inner.src, size, READ)
            yield touch(inner.dst, size, WRITE)
            if inner.mbar is not None:
                yield touch(inner.mbar, OBJECT, WRITE, orders=True)
        case _ if mbarrier_of(inner) is not None and (
            isinstance(inner, ops.CpAsyncArrive) or not _is_asynchronous(inner)
        ):
            place = mbarrier_of(inner)
            assert place is not None
            yield touch(place, OBJECT, WRITE, orders=True)
        case _ if isinstance(inner, OF_THREAD):
            return
        case ops.Barrier() | ops.WarpSync() | ops.Collective() | ops.ClusterBarrier() if not strict:
            return
        case _ if not strict and _is_asynchronous(inner):
            return
        case _:
            raise NotReducible(f"several threads of a cluster draw, and '{op.text}' is not followed", op.span)


def _is_asynchronous(op: Op) -> bool:
    return op.facets.asynchronous and not op.facets.blocks


@dataclass(slots=True)
class _FirstDraws:
    """The watch that tells how many operations of each lane come before the first draw of a team."""

    entry: str
    draws: frozenset[int]
    teams: Teams
    begun: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the draws, and the stores: those of several lanes may be recorded as one."""
        out = list(steps)
        for at, statement, unit in statements(compiler):
            if unit.function.name == self.entry and at - unit.start in self.draws:
                out[at] = self._draw(compiler, unit, statement, steps[at])
            elif statement.kind in (Kind.STORE, Kind.MATRIX_STORE) and at not in compiler.not_followed:
                out[at] = with_action(compiler, unit, statement, self._store(compiler, unit, statement), steps[at])
        return out

    def _store(self, compiler: Compiler, unit: Unit, statement: ptx.Statement) -> BeforeStep | None:
        if statement.opcode.space in ("local", "param"):
            return None
        fetch = compiler.fetch(unit, statement.place)

        def before(c: Cluster, mine: Mask) -> None:
            del c
            lanes = np.array([k for k in np.flatnonzero(mine).tolist() if self.teams.of(k) in self.begun], np.int64)
            places = np.broadcast_to(fetch()[0], mine.shape)[lanes]
            by_team = {(at, self.teams.of(k)) for at, k in zip(places.tolist(), lanes.tolist(), strict=True)}
            if len({at for at, _ in by_team}) < len(by_team):
                raise NotReducible(MEET, statement.span)

        return before

    def _draw(self, compiler: Compiler, unit: Unit, statement: ptx.Statement, step: Step) -> Step:
        def before(c: Cluster, mine: Mask) -> None:
            new = {self.teams.of(lane) for lane in np.flatnonzero(mine).tolist()} - self.begun.keys()
            if new:
                lengths = np.array([len(code) for code in c.recorded.code], np.int64)
                self.begun |= dict.fromkeys(new, lengths)

        action: BeforeStep = before
        return with_action(compiler, unit, statement, action, step)
