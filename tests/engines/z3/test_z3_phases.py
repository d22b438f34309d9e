"""Phases and barriers three times over: brute force, the explicit engine's search, Z3's constraints."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.engines.explicit.enumeration import Enumeration
from mcheck.engines.z3.barrier_constraints import quorum, rounds
from mcheck.engines.z3.choice_misuse import SingleChoice
from mcheck.engines.z3.phase_replay import phase_choices
from mcheck.engines.z3.symbolic_choices import OpenChoice
from mcheck.events.choices import barrier_generations, mbarrier_phases
from mcheck.events.choices.candidate import Choice
from mcheck.events.structure import Structure, build_structure
from mcheck.frontend.litmus import parse
from tests.engines.z3.force import Shown, by_force, shown

OPERATIONS = (
    ("mbarrier.arrive.shared::cta.b64 _, [bar];", 6),
    ("mbarrier.arrive.shared::cta.b64 _, [bar], 2;", 1),
    ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;", 2),
    ("mbarrier.arrive_drop.shared::cta.b64 _, [bar];", 2),
    ("mbarrier.arrive.noComplete.shared::cta.b64 %rd{k}, [bar], 1;", 1),
    ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;", 1),
    ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;", 2),
    ("cp.async.mbarrier.arrive.shared::cta.b64 [bar];", 1),
    ("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];", 1),
    ("mbarrier.test_wait.parity.shared::cta.b64 %p{k}, [bar], 0;", 3),
    ("mbarrier.test_wait.parity.shared::cta.b64 %p{k}, [bar], 1;", 2),
    ("await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;", 3),
    ("await mbarrier.try_wait.parity.shared::cta.b64 [bar], 1;", 1),
    (
        "mbarrier.arrive.shared::cta.b64 %rd{k}, [bar];\n  mbarrier.test_wait.shared::cta.b64 %p{k}, [bar], %rd{k};",
        2,
    ),
    ("mbarrier.inval.shared::cta.b64 [bar];", 1),
    ("mbarrier.init.shared::cta.b64 [bar], 1;", 1),
)


def program_of(random: Random, most: int) -> str:
    """A few operations on one mbarrier, spread over up to three threads."""
    threads: list[list[str]] = [[] for _ in range(random.randint(1, 3))]
    if random.random() < 0.97:
        threads[0].append(f"mbarrier.init.shared::cta.b64 [bar], {random.choice((1, 1, 2, 2, 3))};")
    for k in range(random.randint(1, most)):
        op = random.choices([t for t, _ in OPERATIONS], [w for _, w in OPERATIONS])[0]
        random.choice(threads).append(op.replace("{k}", str(k)))
    body = "".join(f"P{k}@cta 0 {{\n  " + "\n  ".join(ops) + "\n}\n" for k, ops in enumerate(threads) if ops)
    return "PTX phases\n{ .shared .align 8 .b64 bar; }\n" + body


def structures(text: str) -> Iterator[Structure]:
    """The structures of a program, one for each combination of paths that end."""
    program = parse(text, "phases.litmus")
    run = Enumeration(program, load_model("ptx-9.0"), "spec", False, 2, Limit(), "ptx", False)
    for paths in product(*([p for p in paths if p.end == "end"] for paths in run.paths())):
        yield build_structure(program, paths, ())


MOST = 6
COUNT = 50


def options_of(choice: Choice) -> set[Shown]:
    """All options of an open choice."""
    assert isinstance(choice, OpenChoice)
    return {shown(option) for option in SingleChoice(choice).options()}


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("seed", range(4))
def test_the_phases_are_those_of_some_order(seed: int) -> None:
    """On random programs brute force, search and constraints find the same assignments, no more and no fewer."""
    random = Random(seed)
    seen: set[str] = set()
    for _ in range(COUNT):
        for s in structures(program_of(random, MOST)):
            waits = [e for path in s.paths for e in path.events[-1:] if e.mbarrier and e.mbarrier.kind == "wait"]
            late = frozenset(e.uid for e in waits if random.random() < 0.2)
            (members,) = mbarrier_phases.members_of(s) or [[]]
            if not members:
                continue
            expected = by_force(s, members, late)
            searched = mbarrier_phases.choices(s, late)
            assert {shown(o) for c in searched or () for o in c.options} == expected, s.program.name
            (choice,) = phase_choices(s, late)
            assert options_of(choice) == expected
            seen |= {misuse[0] for _, _, misuse, _ in expected if isinstance(misuse, tuple)}
            seen |= {code for *_, remarks in expected if isinstance(remarks, frozenset) for code, _ in remarks}
    assert seen >= {"UB201", "UB202", "UB205", "UB212", "UB216"}


def meetings_of(random: Random) -> str:
    """A few uses of named barriers with counts, spread over up to four warps."""
    count = random.choice((64, 64, 96))
    threads = []
    for k in range(random.randint(2, 4)):
        ops = [random.choice((f"bar.sync 1, {count};", f"bar.arrive 1, {count};", f"bar.sync 1, {count};"))]
        ops += random.choices((f"bar.sync 1, {count};", f"bar.arrive 1, {count};", ""), k=random.randint(0, 2))
        threads.append(f"P{k}@cta 0 {{\n  " + "\n  ".join(ops) + "\n}\n")
    return "PTX meetings\n{ }\n" + "".join(threads)


@pytest.mark.daily(days=3, least=0)
def test_the_rounds_are_those_of_the_search() -> None:
    """On random programs with named barriers search and constraints find the same fillings."""
    random = Random(1)
    wide = 0
    for _ in range(120):
        for s in structures(meetings_of(random)):
            searched = barrier_generations.dynamic_choices(s)
            found = barrier_generations.dynamic_choices(s, quorum, rounds)
            for choice in found or ():
                if isinstance(choice, OpenChoice):
                    expected = {shown(o) for c in searched or () for o in c.options}
                    assert options_of(choice) == expected, s.program.threads
                    wide += len(expected) > 2
    assert wide > 10


def test_a_quorum_is_any_set_of_that_size() -> None:
    """A quorum of three among five, and what waits for it."""
    choice = quorum("syncbar", [1, 2, 3, 4, 5], [8, 9], 3)
    listed = barrier_generations.quorum_choice("syncbar", [1, 2, 3, 4, 5], [8, 9], 3)
    assert options_of(choice) == {shown(o) for o in listed.options}
