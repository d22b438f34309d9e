"""Proofs for grids whose clusters draw tiles from one word until none is left.

*Conditions.*

1. The first value c of the word is given. One thread of each cluster draws numbers from it, by atomics that add 1 at a
   scope of the grid; nothing else accesses it. So all numbers that are drawn are different, and those of a cluster
   grow. Behind the last one of the ``count`` tiles, a cluster draws only numbers that mean the end.
2. Whichever tile is drawn, and whichever number behind the tiles, a round does the same, in every cluster: control,
   operands and addresses of shared memory are the same. What it accesses of global memory is a function of the number
   that one round has drawn, or of the coordinates of the cluster, not of both
   (``mcheck.simt.grid.draws.tile_accesses``).
3. Accesses that depend on the number drawn conflict with none of another number, whoever draws it, and with none that
   does not depend on one; those of the same number that move differently do not meet for any. Accesses that depend on
   no number conflict with none of another cluster.
4. No strong access of global memory, but for those of the word and for reductions that order nothing.

*The argument.* Clusters do not conflict (1, 3), so a race is one within a cluster. What the atomics on the word order
is nothing within it: its own are those of one thread, and between clusters nothing has to be ordered. So take them
away, and with them all other clusters: the cluster is given k different numbers and then ones behind the tiles. Now let
it be given the same number in each round. It does the same (2), at other places: two accesses that have met still do,
for either none depends on a number, or both on the same one, and move alike (3). So a race is still one, and what
orders its accesses has not become more (4). The numbers of rounds k from 0 to that of the tiles are all there are: one
cluster may draw every tile. So it is enough that a cluster that is given the same number k times has no error, for each
such k. Accesses are in bounds and aligned for every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import InputError, Unsupported
from mcheck.base.progress import Level, note
from mcheck.base.reasons import Cause, Reason, share_reason
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.followed_clusters import FollowModule, ProveEvery
from mcheck.checking.modules.grid_coverage import is_conflict
from mcheck.checking.modules.pairs.cluster_pairs import join_answers
from mcheck.checking.modules.pairs.executed_alone import within_one_cluster
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.draws.drawn_numbers import find_draws
from mcheck.simt.grid.draws.given_draws import GivenDraws, give_draws, with_any_rounds, with_rounds
from mcheck.simt.grid.draws.predication import with_guards
from mcheck.simt.grid.draws.tile_accesses import MAX_NUMBER, check_apart, find_tiles, watch_rounds
from mcheck.simt.grid.pairs.known_words import without_contents
from mcheck.simt.grid.pairs.reduction import MAX_CLUSTERS, NotReducible, cancels_clusters, is_box

SAID = (
    "all {} clusters draw tiles from {}, each does the same with any of the {} tiles, and tiles keep apart; one cluster"
    " was followed for each number of tiles that it may draw"
)
MAX_TILES = 1 << 12
"""Maximum number of tiles."""
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
        limit.check()
        return share_reason("following a cluster that draws tiles", seconds)
    except (InputError, Unsupported):  # of the kernel as it is this is said elsewhere
        return None


def answer_drawn(
    module: Module, launch: Launch, follow: FollowModule, every: ProveEvery | None, limit: Limit
) -> Answer | None:
    """The answer about a grid whose clusters draw tiles, if it is proved. Raises ``NotReducible`` if a condition does
    not hold.
    """
    total = prod(launch.cluster_counts)
    if (
        launch.beside
        or launch.group is not None
        or is_box(launch)
        or total == 1
        or cancels_clusters(module)
        or total > MAX_CLUSTERS
    ):
        raise NotReducible("not a grid of few clusters", applies=False)
    entry = with_guards(module.functions[launch.entry])
    module = replace(module, functions={**module.functions, launch.entry: entry})
    with within_one_cluster(limit) as within:
        draws = find_draws(module, launch, within)
        alone = without_contents(
            replace(launch, group=None, together=(1, 1, 1)), [(draws.word.memory, draws.word.offset)], None
        )
        tiles = find_tiles(module, alone, draws, within)
    if tiles.count > MAX_TILES or tiles.end + tiles.behind >= MAX_NUMBER:
        raise NotReducible(f"there are more than {MAX_TILES} tiles")
    given = give_draws(module, launch.entry, draws, tiles.first, tiles.end)
    watches = [watch_rounds(given, alone, tiles, tiles.count, limit)]
    check_apart(watches, tiles, draws, is_conflict, limit)
    found = _answer_rounds(given, alone, tiles.count, follow, every, limit)
    if found is None:
        return None
    answers, numbers = found
    watches += [watch_rounds(given, alone, tiles, number, limit) for number in numbers if number < tiles.count]
    check_apart(watches, tiles, draws, is_conflict, limit)
    return join_answers(answers, total, SAID.format(total, draws.word.name, tiles.count), together=1)


def _answer_rounds(
    given: GivenDraws, launch: Launch, count: int, follow: FollowModule, every: ProveEvery | None, limit: Limit
) -> tuple[list[Answer], Sequence[int]] | None:
    """The answers about a cluster that draws any of the tiles, and the numbers of tiles with which it differs; ``None``
    unless each is a proof.
    """
    if count > MAX_SINGLE:
        note(Level.CLUSTERS, f"a cluster that draws any of {count} tiles")
        proved = None if every is None else every(given.module, with_any_rounds(given, launch), limit)
        return None if proved is None or proved[0].verdict is not Verdict.PROVED else ([proved[0]], proved[1])
    answers: list[Answer] = []
    for rounds in range(count + 1):
        note(Level.CLUSTERS, f"a cluster that draws {rounds} of {count} tiles")
        one = follow(given.module, with_rounds(launch, rounds), limit)
        if one is None or one.verdict is not Verdict.PROVED:
            limit.check()
            return None
        answers.append(one)
    return answers, range(count + 1)
