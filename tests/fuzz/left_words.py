"""What random small grids leave in their words, and what the explicit engine says of the same threads.

    python -m tests.fuzz.left_words --programs 200 --seed 1

One answer is that of ``mcheck.checking.modules.launches.left_contents``, from clusters that are executed alone; the
other one is the final states of the threads as a litmus test (``tests.fuzz.grids``), which shares none of that. The
grids are those of ``tests.fuzz.rounds``, and grids of which the last CTA to count itself leaves something in the
counter.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from random import Random

from mcheck.base.budget import Limit, TimeOut, processor_time
from mcheck.checking.modules.launches.left_contents import ended_launch
from tests.fuzz import rounds
from tests.fuzz.grids import WORDS, Grid, Lines, damage, judge_threads, make_grid, write_module
from tests.fuzz.pair_answers import build

LEAVES = (
    (),
    ("st.relaxed.gpu.global.u32 [x], 0;",),
    ("st.global.u32 [x], 0;",),
    ("st.relaxed.gpu.global.u32 [x], 5;", "red.relaxed.gpu.global.add.u32 [x], 2;"),
    ("atom.relaxed.gpu.global.exch.b32 r3, [x], 7;",),
    ("red.relaxed.gpu.global.add.u32 [x], 4294967294;",),
    ("red.relaxed.gpu.global.inc.u32 [x], 2;",),
    ("st.relaxed.gpu.global.u32 [x], r4;",),
    ("red.relaxed.gpu.global.max.u32 [x], 9;",),
    ("st.relaxed.gpu.global.u32 [y], 3;",),
)
"""What the last CTA does to the words."""


def last_block(random: Random) -> Grid:
    """A grid whose CTAs count themselves, with up to two damaged lines."""
    ctas = random.choice((2, 3))
    top = random.choice((ctas - 1, ctas - 1, ctas))
    draw = random.choice(("add.u32 r0, [x], 1;", f"inc.u32 r0, [x], {top};"))
    leaves = random.choice(LEAVES)
    body = [f"atom.acq_rel.gpu.global.{draw}", f"if (r0 == {ctas - 1}) {{", "ld.global.u32 r7, [d];", *leaves, "}"]
    before = ["st.global.u32 [d], 1;"] if random.random() < 0.3 else []
    bodies: list[Lines] = [(*(before if k == 0 else ()), *body) for k in range(ctas)]
    for _ in range(random.choices((0, 1, 2), (3, 2, 1))[0]):
        me = random.randrange(ctas)
        bodies[me] = random.choice((damage, rounds.edit))(random, bodies[me])
        if random.random() < 0.4:
            bodies = [bodies[me]] * ctas
    return make_grid(bodies, 1, cooperative=True)


def generate(random: Random) -> Grid:
    """A grid whose words the explicit engine shows."""
    grid = random.choice((last_block, rounds.generate))(random)
    return replace(grid, draft=replace(grid.draft, shown=WORDS))


def compare(grid: Grid, seconds: float = 5.0) -> str:
    """How both answers compare: "wrong: ..." if they contradict each other."""
    module, launch = build(write_module(grid), grid.launch, cooperative=grid.cooperative)
    with processor_time():
        limit = Limit(seconds)
    try:
        ended = ended_launch(module, launch, limit)
    except TimeOut:
        return "late"
    if ended is None:
        return "nothing said"
    judge = judge_threads(grid.draft)
    if judge.kinds is None or judge.states is None:
        return "the judge left it open"
    if judge.kinds:
        return "undefined"
    held = {
        b.name: ended.contents_of(("buffer", b.name)).apply(b.initial, bytes(len(b.initial)))
        for b in ended.buffers if b.name in WORDS
    }  # fmt: skip
    said = {name: int.from_bytes(data, "little") for name, (data, unknown) in held.items() if data and not any(unknown)}
    for state in judge.states:
        found = {str(name).partition("[")[0]: value for name, value in state}
        wrong = {name: (value, found[name]) for name, value in said.items() if found[name] != value}
        if wrong:
            return f"wrong: {wrong}"
    return f"{len(said)} words"


def main() -> int:
    parser = argparse.ArgumentParser(description="compares what random grids leave in their words")
    parser.add_argument("--programs", type=int, default=200, help="how many programs (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first program (%(default)s)")
    chosen = parser.parse_args()
    tally: Counter[str] = Counter()
    for seed in range(chosen.seed, chosen.seed + chosen.programs):
        grid = generate(Random(seed))
        found = compare(grid)
        tally[found] += 1
        if found.startswith("wrong"):
            print(f"seed {seed}: {found}\n{grid.draft.text()}", flush=True)
    for what, number in tally.most_common():
        print(f"{number:5} {what}")
    return int(any(what.startswith("wrong") for what in tally))


if __name__ == "__main__":
    sys.exit(main())
