"""Proofs for grids whose clusters draw tiles from one word until none is left.

*Conditions.*

1. The first value c of the word is given. One thread of each cluster draws numbers from it, or one of each team of its
   threads (condition 5), by atomics that add 1 at a scope of the grid; nothing else accesses it. So all numbers that
   are drawn are different, and those of a thread grow. Behind the last one of the ``count`` tiles, a thread draws only
   numbers that mean the end.
2. Whichever tile is drawn, and whichever number behind the tiles, a round does the same, in every cluster: control,
   operands and addresses of shared memory are the same. What it accesses of global memory is a function of the number
   that one round has drawn, or of the coordinates of the cluster, not of both
   (``mcheck.simt.grid.draws.tile_accesses``).
3. Accesses that depend on the number drawn conflict with none of another number, whoever draws it, and with none that
   does not depend on one; those of the same number that move differently do not meet for any. Accesses that depend on
   no number conflict with none of another cluster.
4. No strong access of global memory, but for those of the word and for reductions that order nothing.
5. If several threads of a cluster draw, each does so for a team: its warp, as many warps for each, or itself alone
   (``mcheck.simt.grid.draws.teams``). From their first draws on, teams share no barrier and no mbarrier, and no bytes
   that one of them writes, whatever number of tiles each has drawn; atomics on one word aside whose scope includes
   both. What a thread does before the first draw of its team does not wait for what others do behind theirs
   (``mcheck.simt.grid.draws.team_accesses``). Each is followed with a tile of its own, for which a round lacks no
   access that it makes for any other tile.

*The argument.* Clusters do not conflict (1, 3), so a race is one within a cluster. What the atomics on the word order
is nothing within it: its own are those of one thread, and between clusters nothing has to be ordered. So take them
away, and with them all other clusters: the cluster is given k different numbers and then ones behind the tiles. Now let
it be given the same number in each round. It does the same (2), at other places: two accesses that have met still do,
for either none depends on a number, or both on the same one, and move alike (3). So a race is still one, and what
orders its accesses has not become more (4). The numbers of rounds k from 0 to that of the tiles are all there are: one
cluster may draw every tile. So it is enough that a cluster that is given the same number k times has no error, for each
such k. Accesses are in bounds and aligned for every number.

*Teams.* The same holds for each team, so let each have one number in all of its rounds, another one than the others
(there are as many tiles): accesses of two teams have only met if neither depends on a number. Now k is one number for
each team, and they need not be equal. It is enough that there is no error if they are. Let x and y be accesses of two
teams, of which y is behind the first draw of its team B. They are no race if x is, too, for then they do not meet (5).
Otherwise x is what its team A does whatever it draws. Take all numbers to be that of B. Then there is an execution in
which all other teams draw behind the end of B, since nobody waits for them (5). There x and y are ordered by what
threads do before the first draws, and by what B does. That is so as well if other numbers are those of the others: what
these do behind their first draws can only add to the order. If neither access is behind a draw, any numbers will do.
Errors of one team are those of its k alone: what it does is the same, and it waits for nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import InputError, Unsupported
from mcheck.base.progress import Level, note
from mcheck.base.reasons import Cause, Reason, share_reason
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.followed_clusters import FollowModule, ProveEvery
from mcheck.checking.modules.grid_coverage import is_conflict
from mcheck.checking.modules.pairs.cluster_pairs import join_answers, of_two_clusters
from mcheck.checking.modules.pairs.executed_alone import within_one_cluster
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.isa.kinds import FENCES
from mcheck.simt.grid.draws.drawn_numbers import Draws, find_draws
from mcheck.simt.grid.draws.given_draws import (
    DrawnTile,
    GivenDraws,
    give_draws,
    give_tiles,
    with_any_rounds,
    with_rounds,
)
from mcheck.simt.grid.draws.predication import with_guards
from mcheck.simt.grid.draws.team_accesses import check_teams
from mcheck.simt.grid.draws.tile_accesses import MAX_NUMBER, Tiles, TilesMeet, check_apart, find_tiles, watch_rounds
from mcheck.simt.grid.pairs.known_words import without_contents
from mcheck.simt.grid.pairs.reduction import MAX_CLUSTERS, NotReducible, cancels_clusters, is_box

SAID = (
    "all {} clusters draw tiles{} from {}, each does the same with any of the {} tiles, and tiles keep apart; one"
    " cluster was followed for each number of tiles that it may draw"
)
SEVERAL = " (in each of them {} threads, for those of their warps or for themselves)"
MAX_TILES = 1 << 12
"""Maximum number of tiles."""
OTHERS = 1
"""The clusters that draw the other tiles where two are followed."""
RELAXED = ("relaxed",)
SECONDS = 30.0
"""Maximum time for this argument; half of what is left of a longer time limit."""
MAX_SINGLE = 6
"""Maximum number of tiles for which each number of rounds is followed by itself."""


def ask_drawn(
    module: Module, launch: Launch, follow: FollowModule, every: ProveEvery | None, limit: Limit
) -> Answer | Reason | None:
    """The answer about a grid whose clusters draw tiles, or why there is none, if they seem to."""
    seconds = max(SECONDS, (limit.left() or 0) / 2)
    try:
        return answer_drawn(module, launch, follow, every, limit.share(seconds))
    except NotReducible as error:
        said = f"clusters draw tiles, but one does not stand for all: {error.why}"
        return Reason(Cause.TIME if error.late else Cause.GAP, said, span=error.span) if error.applies else None
    except TimeOut:
        return share_reason("following a cluster that draws tiles", seconds)
    except (InputError, Unsupported):  # of the kernel as it is this is said elsewhere
        return None


def answer_drawn(
    module: Module, launch: Launch, follow: FollowModule, every: ProveEvery | None, limit: Limit
) -> Answer:
    """The answer about a grid whose clusters draw tiles: it is proved, or two of them have an error. Raises
    ``NotReducible`` if a condition does not hold.
    """
    total = prod(launch.cluster_counts)
    partial_grid = launch.beside or launch.group is not None or is_box(launch)
    if partial_grid or cancels_clusters(module) or not 1 < total <= MAX_CLUSTERS:
        raise NotReducible("the clusters are not those of a grid of a few thousand", applies=False)
    with within_one_cluster(limit) as within:
        draws = find_draws(module, launch, within)
        entry = with_guards(module.functions[launch.entry])
        module = replace(module, functions={**module.functions, launch.entry: entry})
        alone = without_contents(
            replace(launch, group=None, together=(1, 1, 1)), [(draws.word.memory, draws.word.offset)], None
        )
        tiles = find_tiles(module, alone, draws, within)
    if tiles.count > MAX_TILES or tiles.end + tiles.behind >= MAX_NUMBER:
        raise NotReducible(f"there are more than {MAX_TILES} tiles")
    if tiles.count < tiles.teams.count:
        raise NotReducible("a cluster has more threads that draw than there are tiles")
    given = give_draws(module, launch.entry, draws, tiles.first, tiles.end)
    most = watch_rounds(given, alone, tiles, tiles.count, limit)
    own = give_draws(module, launch.entry, draws, tiles.first, tiles.end, tiles.teams)
    try:
        check_apart([most], tiles, draws, is_conflict, limit)
        check_teams(own, alone, tiles.teams, [tiles.count], limit)
        answers, numbers = _answer_rounds(own, alone, tiles.count, follow, every, limit)
        fewer = [watch_rounds(given, alone, tiles, number, limit) for number in numbers if number < tiles.count]
        if fewer:
            check_apart([most, *fewer], tiles, draws, is_conflict, limit)
            check_teams(own, alone, tiles.teams, [tiles.count, *numbers], limit)
    except TilesMeet as meeting:
        two = _answer_meeting(module, alone, draws, tiles, meeting, follow, limit)
        if two is None:
            raise
        return two
    several = SEVERAL.format(tiles.teams.count) if tiles.teams.count > 1 else ""
    said = SAID.format(total, several, draws.word.name, tiles.count)
    return join_answers(answers, total, said, together=1)


def _answer_meeting(
    module: Module, launch: Launch, draws: Draws, tiles: Tiles, meeting: TilesMeet, follow: FollowModule, limit: Limit
) -> Answer | None:
    """The answer about two clusters whose tiles meet, if it is an error: others may draw all other tiles, and where
    nothing orders draws, these two do not wait for it.
    """
    total = prod(launch.cluster_counts)
    orders = [
        s for s in module.functions[launch.entry].body if s.kind in FENCES or s.opcode.orders not in ((), RELAXED)
    ]
    if total < OTHERS + 2 or launch.grid[0] != total or orders or meeting.owners[0] == meeting.owners[1]:
        return None
    own = [cluster for cluster, _ in meeting.owners if cluster is not None]
    free = (k for k in range(total) if k not in own)
    one, other = (DrawnTile(next(free) if at is None else at, tile) for at, tile in meeting.owners)
    given = give_tiles(module, launch.entry, draws, one, other, tiles.end, tiles.teams)
    found = follow(given.module, replace(launch, group=((one.cluster, 0, 0), (other.cluster, 0, 0))), limit)
    if found is None or not any(f.severity == "error" for f in found.findings):
        return None
    said = [f"CTA {one.cluster} draws {'no tile' if one.tile is None else f'tile {one.tile}'}" for one in (one, other)]
    assumed = f"{' and '.join(said)}; others have drawn the rest"
    return of_two_clusters(replace(found, assumptions=(*found.assumptions, assumed)), total)


def _answer_rounds(
    given: GivenDraws, launch: Launch, count: int, follow: FollowModule, every: ProveEvery | None, limit: Limit
) -> tuple[list[Answer], Sequence[int]]:
    """Proofs about a cluster that draws any of the tiles, and the numbers of tiles with which it differs. Raises
    ``NotReducible`` if there is none.
    """
    note(Level.CLUSTERS, f"a cluster that draws any of {count} tiles")
    if count > MAX_SINGLE:
        if every is None:
            raise NotReducible("there are more tiles than are followed by themselves")
        proved, numbers = every(given.module, with_any_rounds(given, launch), limit)
        return [_require_proof(proved, limit)], numbers
    single = range(count + 1)
    return [_require_proof(follow(given.module, with_rounds(launch, k), limit), limit) for k in single], single


def _require_proof(given: Answer | None, limit: Limit) -> Answer:
    if given is None or given.verdict is not Verdict.PROVED:
        limit.check()
        why = given.reasons[0].what if given is not None and given.reasons else "it waits for others"
        raise NotReducible(f"of a cluster that is given what it draws not all is proved ({why})")
    return given
