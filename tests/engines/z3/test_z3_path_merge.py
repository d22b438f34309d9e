"""One formula for all combinations of paths: the same answers as one after the other, and far fewer questions."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.width import branches
from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer as explicit
from mcheck.engines.explicit.enumeration import Enumeration
from mcheck.engines.z3 import engine
from mcheck.engines.z3.engine import answer as solved
from mcheck.engines.z3.path_merge import groups, merge_paths
from mcheck.events.event import Path
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.fuzz.programs import program as random_program

SHARED_END = """PTX shared-end
{ .global .u32 x = 0; .global .u32 y = 0; .global .u32 z = 0; }
P0@cta 0 {
  ld.relaxed.gpu.global.u32 r0, [x];
  if (r0 == 1) { st.relaxed.gpu.global.u32 [y], 1; }
  ld.acquire.gpu.global.u32 r1, [z];
  st.relaxed.gpu.global.u32 [z], r1;
}
P1@cta 1 { st.relaxed.gpu.global.u32 [x], 1; ld.relaxed.gpu.global.u32 r0, [y]; }
exists (P0:r0 == 1 /\\ P1:r0 == 1)
"""


def ended(text: str) -> tuple[Program, list[list[Path]]]:
    """The paths of each thread that end."""
    program = parse(text, "merge.litmus")
    run = Enumeration(program, load_model("ptx-9.0"), "spec", False, 2, Limit(), "ptx", False)
    return program, [[p for p in paths if p.end == "end"] for paths in run.paths()]


def told(answer: Answer) -> object:
    """What the engines have to agree on."""
    return answer.verdict, answer.undefined, {o.state for o in answer.outcomes}, {f.code for f in answer.findings}


def test_what_follows_a_branch_stands_once() -> None:
    """The branch not taken and the branch taken share the load before and all that comes after."""
    _, (first, _) = ended(SHARED_END)
    joined = merge_paths(first)
    assert len(first) == 2
    assert sorted(len(p.events) for p in first) == [3, 4]
    assert len(joined.path.events) == 4
    assert sorted(joined.masks.values()) != [joined.all_mask] * 4
    for path, names in zip(first, joined.names, strict=True):
        placed = [names[e.uid] for e in path.events]
        assert placed == sorted(placed), "every path is a part of the row"


def test_paths_with_other_barriers_are_asked_by_themselves() -> None:
    """A barrier in one branch only: who meets whom differs, so the paths are two groups."""
    text = SHARED_END.replace("{ st.relaxed.gpu.global.u32 [y], 1; }", "{ bar.sync 0; }")
    _, (first, _) = ended(text)
    assert [len(g.alternatives) for g in groups(first)] == [1, 1]


def test_many_branches_are_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 threads with 5 branches each have a million combinations of paths."""
    asked: list[object] = []
    original = engine.Question

    def counting(*arguments: object) -> object:
        asked.append(arguments)
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "Question", counting)
    program = parse(branches(5, threads=4), "branches.litmus")
    found = solved(program, load_model("ptx-9.0"), verdict_only=True, timeout=60)
    assert found.verdict == "fail"
    assert len(asked) == 1


@pytest.mark.daily
@pytest.mark.parametrize(("threads", "ifs"), [(2, 3), (3, 2), (2, 4)])
def test_branches_as_the_exhaustive_engine_has_them(threads: int, ifs: int) -> None:
    """All states of programs with branches."""
    program = parse(branches(ifs, threads), "branches.litmus")
    model = load_model("ptx-9.0")
    assert told(solved(program, model)) == told(explicit(program, model))


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("seed", range(5, 9))
def test_together_or_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random programs with branches: one formula for all combinations says what a formula for each says."""
    random = Random(seed)
    joined = 0
    original = engine.Z3Run.solve_joined

    def counting(self: engine.Z3Run, threads: list[object]) -> bool:
        nonlocal joined
        done = original(self, threads)  # type: ignore[arg-type]
        joined += done
        return done

    monkeypatch.setattr(engine.Z3Run, "solve_joined", counting)
    tried = 0
    while tried < 10 or joined <= 2:
        text = random_program(random)
        if "if (" not in text and "bra " not in text:
            continue
        tried += 1
        program = parse(text, "merge.litmus")
        model = load_model(program.model or "ptx-9.0")
        monkeypatch.setattr(engine, "FEW", 2)
        together = solved(program, model, timeout=20)
        monkeypatch.setattr(engine, "FEW", 1 << 60)
        assert told(together) == told(solved(program, model, timeout=20)), text
