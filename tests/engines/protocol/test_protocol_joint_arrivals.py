"""Arrivals of whole warps at a counter: lanes that arrive in one step, and what tells them apart."""

from __future__ import annotations

import random

import pytest

from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.budget import processor_time
from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer as enumerate_all
from mcheck.engines.protocol.analysis.lane_groups import partition_lanes
from mcheck.engines.protocol.determined_waits import find_least_execution
from mcheck.engines.protocol.execution.setup import prepare
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.passes import passes_without
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program

MODEL = load_model("ptx-9.0")
SECONDS = 20.0


def grid_barrier(ctas: int, warps: int, rounds: int, *, arrive: str = "red.release.gpu", few: int = 0) -> str:
    """A grid barrier at which every thread arrives and waits, between tiles that the next CTA reads."""
    lanes = 32 * warps
    threads = ctas * lanes
    return f"""PTX grid-barrier
    {{ .global .u32 met = 0; .global .u32 tile[{threads * rounds}]; }}
    block@cta 0..{ctas}, warp 0..{warps} {{
      for k in 0..{rounds} {{
        st.global.u32 [tile + 4*({threads}*k + {lanes}*%ctaid.x + %tid.x)], 1;
        {arrive}.global.add.u32 [met], 1;
        await ld.acquire.gpu.global.u32 r0, [met] >= {threads}*(k + 1) - {few};
        ld.global.u32 r1, [tile + 4*({threads}*k + ({lanes}*(%ctaid.x + 1) + %tid.x + 5) % {threads})];
      }}
    }}
    """


def is_concluded(program: Program) -> bool:
    """Whether an execution in which lanes arrive together is taken for all, with fewer agents than otherwise."""
    joint = partition_lanes(program, joint=True)
    setup = prepare(program, joint, MODEL, "ptx", 2, lambda: None)
    setup.follows_causality = True
    return len(joint) < len(partition_lanes(program)) and find_least_execution(setup)[0]


@pytest.mark.daily(days=3, least=0)
def test_64_threads_of_8_ctas_meet_4_times() -> None:
    with processor_time():
        given = check(parse(grid_barrier(8, 2, 4), "barrier.litmus"), MODEL, timeout=SECONDS)
    assert (given.verdict, given.findings, given.executions) == ("proved", (), 1)


@pytest.mark.daily(days=4, least=0)
def test_the_pass_changes_no_answer() -> None:
    for text in (grid_barrier(1, 2, 1), grid_barrier(1, 1, 1, few=1), grid_barrier(1, 1, 1, arrive="red.relaxed.gpu")):
        program = parse(text, "barrier.litmus")
        with processor_time():
            one, other = (
                check(program, MODEL, timeout=SECONDS, passes=passes_without(p)) for p in ((), ("joint-arrivals",))
            )
        assert (one.verdict, {f.code for f in one.findings}) == (other.verdict, {f.code for f in other.findings})


CONCLUDED = {
    "a barrier": "red.release.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] >= 4;",
    "fences": """fence.acq_rel.gpu; atom.relaxed.gpu.global.add.u32 r9, [c], 3;
        await ld.relaxed.gpu.global.u32 r0, [c] > 11; fence.acq_rel.gpu;""",
    "exactly all": "red.release.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] == 4;",
    "two rounds": """red.release.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] >= 4;
        red.release.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] >= 8;""",
    "two rounds, exactly all, between barriers": """
        red.release.gpu.global.add.u32 [c], 1; bar.warp.sync 3; await ld.acquire.gpu.global.u32 r0, [c] >= 4;
        bar.warp.sync 3; red.release.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] == 8;""",
}
TOLD_APART = {
    "one too few": "red.release.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] >= 3;",
    "half of a warp": """
        red.release.gpu.global.add.u32 [c], 1; red.release.gpu.global.add.u32 [c], 1;
        await ld.acquire.gpu.global.u32 r0, [c] >= 6;""",
    "another lane has gone on": """
        red.release.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] == 4;
        red.release.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] == 8;""",
    "a relaxed wait": "red.release.gpu.global.add.u32 [c], 1; await ld.relaxed.gpu.global.u32 r0, [c] >= 4;",
    "a relaxed arrival": "red.relaxed.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] >= 4;",
    "a narrow scope": "red.release.cta.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] >= 4;",
    "nobody waits": "red.release.gpu.global.add.u32 [c], 1;",
    "the wait comes first": "await ld.acquire.gpu.global.u32 r0, [c] >= 0; red.release.gpu.global.add.u32 [c], 1;",
    "a ticket": """atom.acq_rel.gpu.global.add.u32 r9, [c], 1; await ld.acquire.gpu.global.u32 r0, [c] >= 4;
        if (r9 == 3) { st.global.u32 [e], 1; }""",
    "a value that is used": """red.release.gpu.global.add.u32 [c], 1;
        await ld.acquire.gpu.global.u32 r0, [c] >= 4; if (r0 == 5) { st.global.u32 [e], 1; }""",
    "a counter with data": """red.release.gpu.global.add.u32 [c], 1;
        await ld.acquire.gpu.global.u32 r0, [c] >= 4; ld.global.u32 r2, [c];""",
    "an exchange": "atom.release.gpu.global.exch.b32 r9, [c], 4; await ld.acquire.gpu.global.u32 r0, [c] >= 4;",
    "a reset": """red.release.gpu.global.add.u32 [c], 1; await ld.acquire.gpu.global.u32 r0, [c] >= 4;
        st.relaxed.gpu.global.u32 [c], 0;""",
    "subtractions": "red.release.gpu.global.add.u32 [c], -1; await ld.acquire.gpu.global.s32 r0, [c] <= -4;",
    "an overflow": "red.release.gpu.global.add.u32 [c], 1073741824; await ld.acquire.gpu.global.u32 r0, [c] >= 4;",
}


def of_two_ctas(code: str) -> Program:
    """Two CTAs of two lanes that store, synchronise by some code, and read what a lane of the other CTA has stored."""
    return parse(
        f"""PTX t {{ .global .u32 c = 0, e = 0; .global .u32 d[4]; }}
        t@cta 0..2, warp 0, lane 0..2 {{
          st.global.u32 [d + 4*(2*%ctaid.x + %laneid)], 1;
          {code}
          ld.global.u32 r1, [d + 4*((2*%ctaid.x + %laneid + 3) % 4)];
        }}""",
        "t.litmus",
    )


@pytest.mark.parametrize("name", CONCLUDED)
def test_lanes_that_arrive_together_are_concluded(name: str) -> None:
    assert is_concluded(of_two_ctas(CONCLUDED[name]))


@pytest.mark.parametrize("name", TOLD_APART)
def test_what_tells_lanes_apart_is_not_concluded(name: str) -> None:
    assert not is_concluded(of_two_ctas(TOLD_APART[name]))


def test_a_lane_waits_for_what_it_knows_of_the_others() -> None:
    """A lane reads what another lane of its warp has stored, after its own arrival, or after it has waited for all."""
    program = """PTX t {{ .global .u32 c = 0; .global .u32 d[2]; }}
        t@cta 0, warp 0, lane 0..2 {{
          st.global.u32 [d + 4*%laneid], 1;
          red.release.gpu.global.add.u32 [c], 1;
          {0} ld.global.u32 r1, [d + 4*((%laneid + 1) % 2)]; {1}
        }}"""
    wait = "await ld.acquire.gpu.global.u32 r0, [c] >= 2;"
    assert is_concluded(parse(program.format(wait, ""), "t.litmus"))
    assert not is_concluded(parse(program.format("", wait), "t.litmus"))


@pytest.mark.parametrize(
    ("between", "awaited", "concluded"), [("", 2, False), ("bar.warp.sync 3;", 2, True), ("", 4, True)]
)
def test_a_lane_may_arrive_again_before_another_one_arrives(between: str, awaited: int, concluded: bool) -> None:
    program = f"""PTX t {{ .global .u32 c = 0; .global .u32 d[2]; }}
        t@cta 0, warp 0, lane 0..2 {{
          st.global.u32 [d + 4*%laneid], 1;
          red.release.gpu.global.add.u32 [c], 1; {between} red.release.gpu.global.add.u32 [c], 1;
        }}
        z@cta 1 {{
          await ld.acquire.gpu.global.u32 r0, [c] >= {awaited}; ld.global.u32 r1, [d]; ld.global.u32 r2, [d + 4];
        }}"""
    assert is_concluded(parse(program, "t.litmus")) is concluded


def drawn(seed: int) -> str:
    """A CTA of two or three lanes, or two of two, that meet at a counter, with something left out, moved or weaker, and
    perhaps a thread that joins in.
    """
    rng = random.Random(seed)
    ctas, lanes = rng.choice([(1, 2), (1, 3), (2, 2)])
    each, few, all_lanes = rng.choice([1, 1, 2]), rng.choice([0, 0, 0, 1, -1]), (1 << lanes) - 1
    total = ctas * lanes * each
    roles = []
    for cta in range(ctas):

        def or_relaxed(order: str) -> str:
            return rng.choice([order] * 6 + ["relaxed"])

        def fence() -> str:
            return rng.choice(["fence.acq_rel.gpu;"] * 4 + ["fence.sc.gpu;", "fence.acq_rel.cta;", ""])

        place = f"{lanes * ((cta + 1) % ctas)}"
        mine = f"st.global.u32 [d + 4*(%laneid + {lanes * cta})], 1;"
        other = f"[d + 4*((%laneid + {rng.randrange(2)}) % {lanes} + {place})]"
        scope = rng.choice(["gpu"] * 6 + ["cta"])
        wait = f"{rng.choice(['>=', '>=', '==', '>'])} {total - few};"
        if rng.random() < 0.6:
            arrive = f"{rng.choice(['red', 'atom'])}.{or_relaxed('release')}.{scope}"
            code = [mine, arrive, f"await ld.{or_relaxed('acquire')}.gpu.global.u32 r0, [c] {wait}"]
        else:
            arrive = f"red.relaxed.{scope}"
            code = [mine, fence(), arrive, f"await ld.relaxed.gpu.global.u32 r0, [c] {wait}", fence()]
        register = "r9, " if arrive.startswith("atom") else ""
        code[code.index(arrive)] = f"{arrive}.global.add.u32 {register}[c], {each};"
        code.append(rng.choice([f"ld.global.u32 r1, {other};", f"st.global.u32 {other}, 2;"]))
        if rng.random() < 0.3:
            code.insert(rng.randrange(1, len(code)), f"bar.warp.sync {all_lanes};")
        match rng.randrange(8):
            case 0:
                code.pop(rng.randrange(len(code)))
            case 1:
                rng.shuffle(code)
            case 2:
                odd = (
                    "ld.global.u32 r5, [c];",
                    "st.relaxed.gpu.global.u32 [c], 0;",
                    "atom.relaxed.gpu.global.exch.b32 r8, [c], 1;",
                    "ld.relaxed.gpu.global.u32 r5, [c];",
                )
                code.insert(rng.randrange(len(code)), rng.choice(odd))
            case 3:
                code.append(f"red.release.gpu.global.add.u32 [c], {each};")
        roles.append(f"t{cta}@cta {cta}, warp 0, lane 0..{lanes} {{ {' '.join(code)} }}")
    if ctas * lanes < 4 and rng.random() < 0.3:
        joins = (
            f"red.release.gpu.global.add.u32 [c], {each};",
            "st.relaxed.gpu.global.u32 [c], 0;",
            f"await ld.acquire.gpu.global.u32 r0, [c] >= {total}; ld.global.u32 r1, [d];",
        )
        roles.append(f"z@cta {ctas} {{ {rng.choice(joins)} }}")
    return f"PTX drawn {{ .global .u32 c = 0; .global .u32 d[4]; }} {' '.join(roles)}"


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("part", range(4))
def test_of_random_arrivals_only_those_without_a_finding_are_concluded(part: int) -> None:
    concluded = 0
    for seed in range(40 * part, 40 * part + 40):
        program = parse(drawn(seed), "drawn.litmus")
        if not is_concluded(program):
            continue
        concluded += 1
        with processor_time():
            one = check(program, MODEL, timeout=SECONDS, passes=passes_without(("joint-arrivals",)))
            assert one.verdict in ("proved", "unknown"), seed
            if len(program.threads) < 4:
                every = add_verdict(enumerate_all(program, MODEL, findings=True, timeout=SECONDS))
                assert every.verdict in ("proved", "unknown"), seed
    assert concluded
