"""The global memory that a cluster accesses in a round, in terms of its coordinates and of the number that it drew.

The cluster is executed with as many rounds as there are tiles, each with one and the same number, which varies as a
coordinate does. Rounds take turns with a few symbols: when one is used again, what still depends on the number before
is not followed any more. So do the numbers that are drawn when no tile is left: these are different, too.

Teams of threads that draw for themselves (``mcheck.simt.grid.draws.teams``) have the same symbols, each for its own
numbers. No value that one has may come to another one; that is for the caller to see.

What a cluster does behind its last round may depend on how many there were. So it is executed with several numbers of
rounds, and what is compared is what it accesses with any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import combinations_with_replacement
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.memory_layout import LOCAL_BASE
from mcheck.frontend.ptx.module import Module
from mcheck.isa.kinds import Kind
from mcheck.simt.distinct import distinct, distinct_rows
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import statements
from mcheck.simt.execution.value_numbering import mix_numbers
from mcheck.simt.grid.draws.drawn_numbers import Draws
from mcheck.simt.grid.draws.given_draws import GivenDraws, give_draws, with_rounds
from mcheck.simt.grid.draws.teams import Teams, find_teams, one_team
from mcheck.simt.grid.footprints.affine_forms import NEVER, Conditions
from mcheck.simt.grid.footprints.class_names import slope_names
from mcheck.simt.grid.footprints.footprint import ANY, UPDATE, Form
from mcheck.simt.grid.footprints.grid_classes import (
    Clash,
    ClassAccess,
    GridClasses,
    Incomparable,
    accesses_of,
    find_clashes,
    meeting_owners,
)
from mcheck.simt.grid.footprints.regions import Extent
from mcheck.simt.grid.footprints.signalling import may_signal
from mcheck.simt.grid.footprints.space import AXES, MAX_SYMBOLS, Slopes, Space
from mcheck.simt.grid.footprints.watched_execution import GridWatch, cluster_space
from mcheck.simt.grid.pairs.only_path import follow_only_path
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.parametric.affine import Slopes as Columns
from mcheck.simt.parametric.affine import Value

TURNS = 3
"""The symbols of numbers that are drawn one after the other."""
MAX_LAST = 64
"""How many numbers may be drawn when no tile is left."""
MAX_NUMBER = 1 << 30
"""The largest number that may be drawn."""
LAST_TURNS = 2
"""The same of numbers that are drawn when no tile is left."""
TILE_AXES = range(AXES, AXES + TURNS)
LAST_AXES = range(TILE_AXES.stop, TILE_AXES.stop + LAST_TURNS)
DRAWN_AXES = frozenset((*TILE_AXES, *LAST_AXES))
_EPOCH = 31

IsConflict = Callable[[Form, Form], bool]


@dataclass(frozen=True, slots=True)
class Tiles:
    """The numbers of tiles, of which the executed cluster is given the first one, and how many more may be drawn."""

    first: int
    count: int
    behind: int
    teams: Teams

    @property
    def end(self) -> int:
        """The first number behind the tiles."""
        return self.first + self.count

    def space(self, launch: Launch) -> Space:
        """The clusters of the grid, with the tiles as further axes."""
        grid, zeros = cluster_space(launch), (0,) * len(DRAWN_AXES)
        most = (self.count - 1,) * TURNS + (self.behind - 1,) * LAST_TURNS
        return Space((*grid.low, *zeros), (*grid.high, *most), (*grid.first, *zeros))


@dataclass(slots=True)
class Drawn:
    """How many tiles a thread has drawn, and how many numbers behind them."""

    rounds: int = 0
    last: int = 0


@dataclass(slots=True)
class RoundWatch(GridWatch):
    """The watch on a cluster that is given what it draws."""

    executes_alone: ClassVar[bool] = True
    repeats_rounds: ClassVar[bool] = False
    given: GivenDraws = field(kw_only=True)
    entry: str = field(kw_only=True)
    teams: Teams = field(kw_only=True)
    """The threads that share what one of them draws."""
    epochs: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(MAX_SYMBOLS, np.uint64))
    """By axis, the round of the number that it stands for."""
    drawn: dict[int, Drawn] = field(default_factory=dict)
    """What has been drawn, by the lane of the thread."""
    may_order: str = ""
    """An instruction that may order accesses of different rounds or clusters."""

    @property
    def last_draws(self) -> int:
        """How many numbers behind the tiles the cluster has drawn."""
        return sum(one.last for one in self.drawn.values())

    def varying(self, compiler: Compiler) -> frozenset[int]:
        """The rows of the numbers that are drawn."""
        return frozenset(
            unit.frame + r.index for _, s, unit in self._draws(compiler) for r in s.defs
        )  # fmt: skip

    def _draws(self, compiler: Compiler) -> Iterator[tuple[int, ptx.Statement, Unit]]:
        for at, statement, unit in statements(compiler):
            if unit.function.name == self.entry and at - unit.start in self.given.draws:
                yield at, statement, unit

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the steps: those that give a number begin a round."""
        out = GridWatch.instrument(self, compiler, steps)
        for at, statement, unit in self._draws(compiler):
            out[at] = self._round(unit, statement, out[at])
        for _, statement, _ in statements(compiler):
            if may_signal(statement) and not _only_adds(statement):
                self.may_order = self.may_order or statement.text
        return out

    def _round(self, unit: Unit, statement: ptx.Statement, step: Step) -> Step:
        (target,) = statement.defs
        row, more = unit.frame + target.index, statement.operands[3]
        assert isinstance(more, ptx.Register)
        choice = unit.frame + more.index

        def run(c: Cluster, mask: Mask) -> Mask | None:
            lanes = np.flatnonzero(self.compiler.guarded(unit, statement.guard, mask))
            rest = step(c, mask)
            by_axis: dict[int, list[int]] = {}
            for lane in lanes.tolist():
                by_axis.setdefault(
                    self._next_axis(lane, statement, is_tile=bool(c.lanes.values[choice][lane])), []
                ).append(lane)
            for axis, some in by_axis.items():
                here = np.array(some, np.int64)
                self.epochs[axis] += 1
                self._forget(axis, np.concatenate([self.teams.members(lane) for lane in some]))
                slopes = np.zeros((MAX_SYMBOLS, len(some)), np.int64)
                slopes[axis] = 1
                self.set_form(row, here, Value(c.lanes.values[row][here], slopes, np.zeros(len(some), np.bool_)))
            return rest

        return run

    def _next_axis(self, lane: int, statement: ptx.Statement, *, is_tile: bool) -> int:
        """The axis of the number that a lane draws."""
        drawn = self.drawn.setdefault(lane, Drawn())
        if is_tile:
            drawn.rounds += 1
            return TILE_AXES[(drawn.rounds - 1) % TURNS]
        drawn.last += 1
        if drawn.last > MAX_LAST:
            raise NotReducible("a cluster goes on drawing when no tile is left", statement.span)
        return LAST_AXES[(drawn.last - 1) % LAST_TURNS]

    def _forget(self, axis: int, lanes: NDArray[np.int64]) -> None:
        """A new number has this axis: nothing is known of what depends on the one before, in these lanes."""
        quotients = enumerate(self.space.quotients, self.space.axes)
        symbols = [axis, *(k for k, q in quotients if axis in axes_of(self.space, q.slopes))]
        for row in list(self.slopes):
            old = lanes[self.slopes[row][symbols][:, lanes].any(axis=0)]
            if len(old):
                self.set_unknown([row], old)
        if self.named is not None:
            stored = self.named.slopes
            for name in [n for n, slopes in stored.items() if slopes[symbols].any()]:
                del stored[name]

    def watch_guard(
        self, c: Cluster, statement: ptx.Statement, row: int, mask: Mask, mine: Mask, *, weak: bool
    ) -> Conditions | None:
        """Handle a guard as for clusters. An access that other tiles may lack is there with those that teams are given
        when they are followed with one tile each.
        """
        when = GridWatch.watch_guard(self, c, statement, row, mask, mine, weak=weak)
        if weak and when is not None and self.teams.count > 1:
            for number in distinct(when[mine]).tolist():
                if not self._holds_for_teams(number):
                    raise NotReducible("whether this access is made depends on the number drawn", statement.span)
        return when

    def _holds_for_teams(self, number: int) -> bool:
        """Whether a condition holds in this cluster for as many of the first tiles as there are teams."""
        if number == NEVER:
            return False
        rows = np.zeros((self.teams.count, self.space.axes), np.int64)
        rows[:, list(TILE_AXES)] = np.arange(self.teams.count)[:, None]
        symbols = self.space.symbol_rows(rows)
        parts = self.table.sets[number]
        return all(bool((symbols[:, : len(s)] @ np.array(s, np.int64) <= bound).all()) for s, bound in parts)

    def merges_alike(
        self, at: Word, numbers: list[Word], qualities: list[Word], names: list[Word], lanes: NDArray[np.int64]
    ) -> bool:
        """Whether lanes of a team do; those of others have other tiles."""
        if self.teams.count > 1:
            at = at + np.array([self.teams.of(lane) for lane in lanes.tolist()], np.uint64) * np.uint64(2 * LOCAL_BASE)
        return GridWatch.merges_alike(self, at, numbers, qualities, names, lanes)

    def form_names(self, slopes: Columns) -> Word:
        """The class names of affine forms, other ones for each round."""
        names = slope_names(slopes)
        moving = np.flatnonzero(slopes.any(axis=1))
        epochs = np.array([self._epoch(k) for k in moving.tolist()], np.uint64)
        rounds = np.where(slopes[moving] != 0, epochs[:, None], np.uint64(0))
        return np.where(rounds.any(axis=0), mix_numbers(_EPOCH, [names, *rounds]), names) if len(moving) else names

    def _epoch(self, symbol: int) -> int:
        """A number for the rounds on which a symbol depends."""
        axes = axes_of(self.space, tuple(int(k == symbol) for k in range(symbol + 1)))
        return sum(int(self.epochs[axis]) * (k + 1) for k, axis in enumerate(sorted(axes)) if axis in DRAWN_AXES)


def _only_adds(statement: ptx.Statement) -> bool:
    """Whether an instruction is a reduction that neither releases nor acquires."""
    return statement.kind is Kind.REDUCTION and not statement.opcode.has("release", "acquire", "acq_rel")


def axes_of(space: Space, slopes: Sequence[int]) -> frozenset[int]:
    """The axes on which a form depends."""
    found: set[int] = set()
    for symbol, slope in enumerate(slopes):
        if slope and symbol < space.axes:
            found.add(symbol)
        elif slope and symbol - space.axes < len(space.quotients):
            found |= axes_of(space, space.quotients[symbol - space.axes].slopes)
    return frozenset(found)


# --- what is accessed -------------------------------------------------------------------------------------------------


def find_tiles(module: Module, launch: Launch, draws: Draws, limit: Limit) -> Tiles:
    """The numbers that are tiles: with these a cluster goes on. Raises ``NotReducible``."""
    first = draws.word.first
    given = give_draws(module, launch.entry, draws, first, MAX_NUMBER)
    every = Tiles(first, MAX_NUMBER - first, 1, one_team(launch))
    watch = _execute(given, launch, every, TURNS, limit)
    teams = find_teams(launch, watch.drawn)
    if teams.count > 1:
        watch = _execute(given, launch, replace(every, teams=teams), TURNS, limit)
    bounds = [c.bound for c in watch.space.conditions.values() if is_tile(c.slopes)]
    if not bounds or watch.space.reasons_lost:
        raise NotReducible("the number of tiles is not found")
    return Tiles(first, 1 + min(bounds), watch.last_draws * prod(launch.cluster_counts), teams)


def is_tile(slopes: Slopes) -> bool:
    """Whether a form is the number drawn in a round."""
    return sum(slopes) == 1 == sum(map(abs, slopes)) and slopes.index(1) in TILE_AXES


def _execute(given: GivenDraws, launch: Launch, tiles: Tiles, rounds: int, limit: Limit) -> RoundWatch:
    def make() -> RoundWatch:
        return RoundWatch(tiles.space(launch), given=given, entry=launch.entry, teams=tiles.teams)

    return follow_only_path(given.module, with_rounds(launch, rounds), limit, make)[2]


def watch_rounds(given: GivenDraws, launch: Launch, tiles: Tiles, rounds: int, limit: Limit) -> RoundWatch:
    """Execute a cluster that draws so many tiles. Raises ``NotReducible`` if others that do may do something else."""
    watch = _execute(given, launch, tiles, rounds, limit)
    for reason, span in watch.space.reasons_lost.items():
        raise NotReducible(reason.replace("%ctaid", "the cluster or the number drawn"), span)
    for condition in watch.space.conditions.values():
        raise NotReducible("clusters, or rounds, take different branches here", condition.span)
    drawn, behind = watch.drawn.values(), watch.last_draws * prod(launch.cluster_counts)
    if (
        find_teams(launch, watch.drawn) != tiles.teams
        or any(d.rounds != rounds for d in drawn)
        or behind > tiles.behind
    ):
        raise NotReducible("not the same threads of a cluster draw all numbers")
    if watch.may_order:
        raise NotReducible(f"'{watch.may_order}' may order rounds, or clusters")
    for buffer, span in watch.footprint.outside:
        raise NotReducible(f"in another round this may be outside {watch.footprint.buffer_name(buffer)}", span)
    return watch


@dataclass(slots=True)
class _Owners(GridClasses):
    """Accesses whose owners are clusters of the grid and tiles, by their numbers."""

    def coordinates(self, number: int) -> Coordinates:
        """The number, in the place of coordinates."""
        return number, 0, 0


class TilesMeet(NotReducible):
    """Two tiles, or clusters, access the same bytes; ``owners``: for each a cluster, or a tile that it has drawn. The
    same one twice if an access leaves its buffer.
    """

    def __init__(self, clash: Clash, tiles: Tiles, clusters: int) -> None:
        super().__init__("rounds or clusters access the same bytes", next((s for s in clash.spans if s), None))
        self.owners: list[tuple[int | None, int | None]] = []
        for number, _, _ in (clash.first, clash.second):
            drawn = number - clusters
            self.owners.append((number, None) if drawn < 0 else (None, tiles.first + drawn))


@dataclass(slots=True)
class _Accesses:
    """What clusters access. ``moves`` are, by access, in which tensor it is and how it moves with the number drawn."""

    found: GridClasses
    moves: list[object] = field(default_factory=list)
    seen: set[object] = field(default_factory=set)

    def add(self, watch: RoundWatch, tiles: Tiles) -> None:
        """Add the accesses of an execution, unless another one has had the same. Raises ``NotReducible``."""
        footprint, space = watch.footprint, watch.space
        for form in footprint.beginnings:
            places = ((span, distinct_rows(np.concatenate(a))) for span, a in footprint.beginnings[form].items())
            same = form, tuple(space.quotients), frozenset((span, rows.tobytes()) for span, rows in places)
            if same in self.seen:
                continue
            self.seen.add(same)
            axes = _drawn_of(watch, form)
            symbols, numbers = _places(space, tiles, axes)
            for access in accesses_of(footprint, form, symbols, numbers, space):
                self.append(
                    access if form.sure else replace(access, size=None),
                    (form.shape, tuple(_canonical(space, s) for s in form.slopes)),
                )

    def append(self, access: ClassAccess, moves: object) -> None:
        """Add one access."""
        self.found.accesses.append(access)
        self.moves.append(moves)


def _drawn_of(watch: RoundWatch, form: Form) -> frozenset[int]:
    """The axes on which the place of an access depends. Raises ``NotReducible`` if that may not be."""
    span = next(iter(watch.footprint.beginnings[form]))
    if form.buffer == ANY or form.whole:
        raise NotReducible("the place of this access is not known", span)
    axes = frozenset[int]().union(*(axes_of(watch.space, s) for s in form.slopes))
    drawn = axes & DRAWN_AXES
    if len(drawn) > 1 or not drawn.isdisjoint(LAST_AXES) or (drawn and axes - drawn):
        raise NotReducible("the place of this access depends on more than one number", span)
    if drawn and watch.footprint.is_clipped(form):
        raise NotReducible("part of this box is outside of the tensor", span)
    return axes


def check_apart(
    watches: Sequence[RoundWatch], tiles: Tiles, draws: Draws, is_conflict: IsConflict, limit: Limit
) -> None:
    """Check that rounds with different numbers keep apart, and those of different clusters, whichever of these numbers
    of tiles a cluster draws. Raises ``NotReducible``.
    """
    every = _Accesses(_Owners(watches[0].compiler.lanes.launch))
    for watch in watches:
        every.add(watch, tiles)
    found = every.found
    every.append(_draw(draws, found), ())
    try:
        for clash in find_clashes(found, is_conflict, limit):
            raise TilesMeet(clash, tiles, prod(found.launch.cluster_counts))
        for (one, by), (other, also) in combinations_with_replacement(zip(found.accesses, every.moves, strict=True), 2):
            if one.form.buffer != other.form.buffer or by == also or not is_conflict(one.form, other.form):
                continue
            limit.check()
            if meeting_owners(found.ranges_of(one), found.ranges_of(other)):
                raise NotReducible("accesses that move differently meet in some round", one.span)
    except Incomparable:
        raise NotReducible("there are too many ranges of bytes to compare") from None


def _places(space: Space, tiles: Tiles, axes: frozenset[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The symbols in all tiles, or in all clusters, and numbers for these: those of tiles come after the clusters."""
    ranges = [np.arange(low, high + 1) for low, high in zip(space.low[:AXES], space.high[:AXES], strict=True)]
    clusters = prod(map(len, ranges))
    chosen = axes & {*TILE_AXES}
    if chosen:
        (axis,) = chosen
        rows = np.zeros((tiles.count, space.axes), np.int64)
        rows[:, axis] = np.arange(space.low[axis], space.high[axis] + 1)
        numbers = clusters + np.arange(tiles.count)
    else:
        places = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, AXES)
        rows = np.zeros((clusters, space.axes), np.int64)
        rows[:, :AXES] = places
        numbers = np.arange(clusters)
    return space.symbol_rows(rows), numbers


def _canonical(space: Space, slopes: Slopes) -> object:
    """A form, whichever symbol the number drawn has."""
    terms: list[tuple[object, int]] = []
    for symbol, slope in enumerate(slopes):
        if not slope:
            continue
        if symbol < space.axes:
            terms.append(("tile" if symbol in TILE_AXES else f"axis {symbol}", slope))
        else:
            q = space.quotients[symbol - space.axes]
            terms.append(((q.base, q.divisor, _canonical(space, q.slopes)), slope))
    return frozenset(terms)


def _draw(draws: Draws, found: GridClasses) -> ClassAccess:
    """The access of the word from which numbers are drawn, as that of one more cluster."""
    word = draws.word
    form = Form(buffer=word.address - word.offset, kind=UPDATE)
    extent = Extent(word.offset, word.size, (), ())
    owner = 1 + max((int(a.numbers.max()) for a in found.accesses), default=0)
    return ClassAccess(form, None, (extent,), np.zeros((1, 0), np.int64), np.array([owner], np.int64), None)
