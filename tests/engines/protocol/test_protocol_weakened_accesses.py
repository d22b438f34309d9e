"""Strong accesses whose values decide nothing, followed as weak ones: the same answers as without, in fewer agents."""

from __future__ import annotations

import random

import pytest

from mcheck.answers.verdict_rules import add_verdict
from mcheck.base.budget import processor_time
from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer as enumerate_all
from mcheck.engines.protocol.analysis.lane_groups import partition_lanes
from mcheck.engines.protocol.analysis.weakened_accesses import weaken_accesses
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.passes import ALL_PASSES, passes_without
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program

MODEL = load_model("ptx-9.0")
SECONDS = 30.0
TREE = """
  st.volatile.shared.u32 [s + 4*%laneid], 1;
  bar.warp.sync 0xffffffff;
  if (%laneid < 16) { ld.volatile.shared.u32 r0, [s + 4*%laneid + 64]; st.volatile.shared.u32 [s + 4*%laneid], 2; }
  bar.warp.sync 0xffffffff;
  ld.shared.u32 r1, [s];"""
SUMS = """
  if (%warpid == 0) { st.shared.u32 [s + 4*%laneid], 0; }
  bar.sync 0;
  red.shared.add.u32 [s + 4*%laneid], 1;
  red.shared.add.u32 [s], 1;
  bar.sync 0;
  ld.shared.u32 r0, [s + 4*%laneid];"""
FIRST = "  bar.warp.sync 0xffffffff;\n  if"
LAST = "  bar.sync 0;\n  ld"
RIGHT = {
    "a tree": ("0", TREE),
    "strong accesses in no order": ("0", TREE.replace(FIRST, "  if")),
    "sums": ("0..2", SUMS),
}
BROKEN = {
    "a weak read in no order": ("0", TREE.replace("  bar.warp.sync 0xffffffff;\n  ld", "  ld")),
    "weak stores beside strong loads": ("0", TREE.replace(FIRST, "  if").replace("st.volatile", "st")),
    "a read before all have added": ("0..2", SUMS.replace(LAST, "  ld")),
    "sizes that differ": ("0..2", SUMS.replace("add.u32 [s], 1", "add.u64 [s], 1").replace(LAST, "  ld")),
}


def of_warps(warps: str, body: str) -> Program:
    """A program of whole warps."""
    head = f'PTX test\n"sums in shared memory"\n{{ .shared .align 8 .b32 s[64]; }}\nw@cta 0, warp {warps} {{'
    return parse(head + body + "\n}\n", "test.litmus")


@pytest.mark.parametrize("name", RIGHT)
def test_warps_stay_agents(name: str) -> None:
    program = of_warps(*RIGHT[name])
    weaker = weaken_accesses(program, ALL_PASSES)
    assert weaker is not None
    assert len(partition_lanes(weaker)) < len(partition_lanes(program))
    with processor_time():
        given = check(program, MODEL, timeout=SECONDS)
    assert (given.verdict, given.findings, given.executions) == ("proved", (), 1)


@pytest.mark.daily(least=1)
@pytest.mark.parametrize("name", BROKEN)
def test_a_race_with_weak_accesses_is_found(name: str) -> None:
    with processor_time():
        given = check(of_warps(*BROKEN[name]), MODEL, timeout=SECONDS)
    assert given.verdict == "finding"
    assert {f.kind for f in given.findings} == {"race"}


def test_what_decides_something_stays_strong() -> None:
    """A word that is awaited, or whose value a branch looks at, and the stores to it."""
    looked = TREE.replace("r1, [s];", "r1, [s];\n  if (r1 == 2) { st.shared.u32 [s + 128], 1; }")
    for body in (looked, TREE.replace("ld.shared.u32 r1, [s];", "await ld.relaxed.cta.shared.u32 r1, [s] == 2;")):
        weaker = weaken_accesses(of_warps("0", body), ALL_PASSES)
        kept = [] if weaker is None else [op for op in weaker.threads[0].code if getattr(op, "sem", "weak") != "weak"]
        assert weaker is None or kept


# --- random programs ----------------------------------------------------------------------------------------------


def draft(r: random.Random) -> str:
    """Two or three lanes of one or two warps, which access two words by strong and weak accesses and atomics."""
    lines = []
    for k in range(r.randint(2, 4)):
        word = r.choice(("[s]", "[s + 4]", "[s + 4*%laneid]"))
        sem = r.choice(("", ".volatile", ".relaxed.cta"))
        lines.append(
            r.choice(
                (
                    f"ld{sem}.global.u32 r{k}, {word};",
                    f"st{sem}.global.u32 {word}, {r.randint(0, 2)};",
                    f"red.relaxed.cta.global.add.u32 {word}, 1;",
                    f"atom.relaxed.cta.global.add.u32 r{k}, {word}, 1;",
                )
            )
        )
        match r.randrange(8):
            case 0 | 1 | 2:
                lines.append("bar.sync 0;")
            case 3:
                lines.append("fence.acq_rel.cta;")
            case 4 if " r" in lines[-1]:
                lines.append(f"if (r{k} == 1) {{ st.global.u32 [s + 8], %laneid; }}")
            case 5 if " r" in lines[-1]:
                lines.append(f"st.global.u32 [s + 8], r{k};")
    body = "\n  ".join(lines)
    role = r.choice(("warp 0, lane 0..2", "warp 0..2, lane 0"))
    head = 'PTX random\n"strong and weak"\n{ .global .align 8 .u32 s[4] = {0, 0, 0, 0}; }\n'
    return f"{head}w@cta 0, {role} {{\n  {body}\n}}\n"


@pytest.mark.daily(least=10)
@pytest.mark.parametrize("seed", range(120))
def test_random_programs_are_answered_as_by_enumeration(seed: int) -> None:
    text = draft(random.Random(seed))
    program = parse(text, "random.litmus")
    with processor_time():
        one = check(program, MODEL, timeout=SECONDS)
        other = check(program, MODEL, timeout=SECONDS, passes=passes_without(("weakened-accesses",)))
        all_ = add_verdict(enumerate_all(program, MODEL, timeout=SECONDS, findings=True))
    if one.verdict in ("proved", "finding") and all_.verdict in ("proved", "finding"):
        assert one.verdict == all_.verdict, text
    if other.verdict in ("proved", "finding"):
        assert (one.verdict, {f.code for f in one.findings}) == (other.verdict, {f.code for f in other.findings}), text
