"""Random pairs of launches, against the same threads as one sketch: the start of the second launch acquires what the
first one has let it start with, and its wait acquires the end of the first.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest

from mcheck.checking.check.command import check_case
from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.frontend.ptx.launch_reader import from_object

SEEDS = range(40)
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
TRIGGER, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"
BARRIER, FENCE = "barrier.sync 0;", "fence.acq_rel.gpu;"
Lines = list[str]


def thread(rng: Random, barriers: int, extra: str, word: int) -> Lines:
    """The code of a thread: accesses of a word, fences, barriers, and now and then ``extra``."""
    out = []
    for k in range(barriers + 1):
        for _ in range(rng.randint(0, 3)):
            access = rng.choice((f"ld.global.u32 %r0, [%rd1+{4 * word}];", f"st.global.u32 [%rd1+{4 * word}], 1;"))
            out.append(rng.choice((access, access, extra, FENCE)))
        if k < barriers:
            out.append(BARRIER)
    return out


def kernel(name: str, threads: tuple[Lines, Lines]) -> str:
    """A kernel of two warps, of each of which the first lane does something."""
    bodies = [
        f"  {name}{k}:\n" + "\n".join(f"  {line}" for line in code) + "\n  ret;" for k, code in enumerate(threads)
    ]
    return f"""
.visible .entry {name}(.param .u64 x)
.reqntid 64, 1, 1
{{
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .reg .pred %p<4>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra END;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra {name}1;
{bodies[0]}
{bodies[1]}
  END:
  ret;
}}
"""


def sketch(first: tuple[Lines, Lines], second: tuple[Lines, Lines]) -> str:
    """The threads of both launches in one program."""
    start = "await ld.relaxed.gpu.global.u32 r7, [exited] == 2;"
    if any(TRIGGER in code for code in first):
        start = "await ld.acquire.gpu.global.u32 r7, [launched] == 1;"
    roles = []
    for cta, threads in enumerate((first, second)):
        for warp, code in enumerate(threads):
            lines = [line.replace("%rd1", "x").replace("%r0", "r0") for line in code]
            lines = [line.replace(TRIGGER, "st.relaxed.gpu.global.u32 [launched], 1;") for line in lines]
            lines = [line.replace(WAIT, "await ld.acquire.gpu.global.u32 r6, [ended] == 2;") for line in lines]
            exits = ["red.relaxed.gpu.global.add.u32 [exited], 1;", "red.release.gpu.global.add.u32 [ended], 1;"]
            lines = [start, *lines] if cta else [*lines, *exits]
            body = "\n".join(f"  {line}" for line in lines)
            roles.append(f"t{cta}{warp}@cta {cta}, warp {warp}, lane 0 {{\n{body}\n}}")
    variables = "{ .global .u32 x[2]; .global .u32 launched = 0, exited = 0, ended = 0; }"
    return "PTX pair\n" + variables + "\n" + "\n".join(roles) + "\n"


@cache
def answers(seed: int) -> tuple[str, bool]:
    """The verdict about the launches, and whether the sketch has a race."""
    rng = Random(seed)
    swap, several = rng.randint(0, 1), [rng.randint(0, 2) for _ in range(2)]
    first = thread(rng, several[0], TRIGGER, 0), thread(rng, several[0], TRIGGER, 1)
    second = thread(rng, several[1], WAIT, swap), thread(rng, several[1], WAIT, 1 - swap)
    params = {"params": {"x": {"buffer": "x"}}, "grid": 1}
    launches = [{"entry": "a", **params}, {"entry": "b", "programmatic": True, **params}]
    given = from_object({"launches": launches, "buffers": {"x": {"bytes": 8}}})
    module = HEAD + kernel("a", first) + kernel("b", second)
    found = check_text(module, "<ptx>", given, Settings(timeout=60), Options())
    assert {f.code for f in found.findings} <= {"RACE012"}
    text = sketch(first, second)
    same = check_case(Case("pair.litmus", text=text), Settings(timeout=60), Options())
    assert {f.kind for f in same.findings} <= {"race"}, text
    assert same.findings or same.verdict == "proved", text
    return found.verdict, bool(same.findings)


@pytest.mark.daily
@pytest.mark.parametrize("seed", SEEDS)
def test_the_sketch_has_the_same_answer(seed: int) -> None:
    verdict, race = answers(seed)
    if verdict != "bounded":
        assert (verdict == "finding") == race


@pytest.mark.daily(days=4, least=0)
def test_all_answers_are_seen(all_tests: bool) -> None:
    seeds = SEEDS if all_tests else SEEDS[:12]
    seen = Counter(map(answers, seeds))
    assert seen["proved", False] > 2
    assert seen["finding", True] > 2
    bounded = sum(count for (verdict, _), count in seen.items() if verdict == "bounded")
    assert bounded < (8 if all_tests else 4)
