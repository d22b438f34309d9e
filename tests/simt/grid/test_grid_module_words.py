"""Counters, flags and barriers of a grid in variables of the module, and in the workspace of a cooperative launch."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from mcheck.base.budget import Limit
from mcheck.checking.modules.launches.launch_study import LaunchStudy
from mcheck.checking.modules.pairs.counted_grid import answer_counted
from mcheck.checking.modules.pairs.signalled_grid import answer_signalled
from mcheck.frontend.ptx.known_contents import Contents
from mcheck.frontend.ptx.launch_reader import from_object
from mcheck.frontend.ptx.launch_sequence_reader import build_launches
from mcheck.frontend.ptx.reader import parse_module
from mcheck.frontend.ptx.taint import UNKNOWN
from mcheck.ptx import check
from tests.fuzz import last_blocks, signalled_grids
from tests.fuzz.last_blocks import launch_of, write
from tests.fuzz.pair_answers import build, follow_pair, say_why

SECONDS = 60.0
VARIABLE = ".global .align 8 .u32 counter[64]"


def by_variable(text: str, parameter: str, register: str, initial: int = 0) -> str:
    """The module with a variable in place of the buffer of a parameter."""
    head, rest = text.split(".visible .entry", 1)
    given = f"{VARIABLE} = {{{initial}}};\n" if initial else f"{VARIABLE};\n"
    found = f"ld.param.u64 {register}, [{parameter}];"
    assert found in rest
    return f"{head}{given}.visible .entry{rest.replace(found, f'mov.u64 {register}, counter;')}"


COUNTED = {
    "the last one adds": (last_blocks.Plan(), "proved"),
    "all wait": (last_blocks.Plan(waits=True), "proved"),
    "the last one resets": (last_blocks.Plan(resets=("st.relaxed.gpu.global.u32 [%a3], 0;",)), "proved"),
    "contents that are given": (last_blocks.Plan(given=True), "proved"),
    "no fence": (last_blocks.Plan(fence=""), "finding"),
    "a fence of the CTA": (last_blocks.Plan(fence="fence.acq_rel.cta;"), "finding"),
    "no fence before a wait": (last_blocks.Plan(waits=True, fence=""), "finding"),
    "from one on": (
        last_blocks.Plan(initial=1), "finding"
    ),
}  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("name", COUNTED)
def test_a_counter_may_be_a_variable(name: str) -> None:
    plan, expected = COUNTED[name]
    module, launch = build(
        by_variable(write(plan), "count", "%a3", plan.initial), launch_of(plan), cooperative=plan.cooperative
    )
    found, why = say_why(lambda: answer_counted(module, launch, partial(follow_pair, module), Limit(SECONDS)))
    assert (why if found is None else found.verdict.value) == expected


@pytest.mark.parametrize(
    ("plan", "expected"), [(signalled_grids.Plan(), "proved"), (signalled_grids.Plan(barrier=False), "finding")]
)
def test_turns_may_be_variables(plan: signalled_grids.Plan, expected: str) -> None:
    text = signalled_grids.write(plan)
    register = next(line for line in text.splitlines() if "[flags]" in line or "[words]" in line).split()[1].strip(",")
    parameter = "flags" if "[flags]" in text else "words"
    module, launch = build(
        by_variable(text, parameter, register, plan.initial), signalled_grids.launch_of(plan), cooperative=True
    )
    found, _ = say_why(lambda: answer_signalled(module, launch, partial(follow_pair, module), Limit(SECONDS)))
    assert (None if found is None else found.verdict.value) == expected


# --- several launches -------------------------------------------------------------------------------------------------

LAST = """.version 8.7
.target sm_90
.address_size 64
.global .align 4 .u32 spare = 7;
.global .align 4 .u32 counter;
.visible .entry k(.param .u64 data) .reqntid 1, 1, 1 {
.reg .pred %p; .reg .b32 %r<9>; .reg .b64 %a<9>;
ld.param.u64 %a1, [data]; mov.u64 %a2, counter;
mov.u32 %r1, %ctaid.x; mov.u32 %r3, %nctaid.x; sub.u32 %r4, %r3, 1;
mul.wide.u32 %a3, %r1, 4; add.s64 %a3, %a1, %a3;
st.global.u32 [%a3], %r1;
atom.acq_rel.gpu.global.add.u32 %r5, [%a2], 1;
setp.ne.u32 %p, %r5, %r4;
@%p ret;
ld.global.u32 %r6, [%a1];
ld.global.u32 %r6, [%a1+4];
RESET
ret; }
"""
RESET = "st.relaxed.gpu.global.u32 [%a2], 0;"


def answer_launches(reset: str, number: int = 3, ctas: int = 3, **more: Any) -> Any:
    one = {"grid": ctas, "params": {"data": {"buffer": "data"}}, **more}
    given = {"launches": [one] * number, "buffers": {"data": {"bytes": 4 * ctas}}}
    return check(LAST.replace("RESET", reset), given)


@pytest.mark.daily(days=4, least=0)
@pytest.mark.parametrize("reset", [RESET, ""])
def test_a_launch_finds_a_variable_as_the_last_one_left_it(reset: str) -> None:
    """Without a reset nobody is the last one in the second launch."""
    assert answer_launches(reset).verdict == "proved"


@pytest.mark.daily(days=4, least=0)
def test_a_reset_to_one_makes_the_last_but_one_go_on() -> None:
    found = answer_launches(RESET.replace(", 0;", ", 1;"))
    assert {(f.code, f.message.partition(":")[0]) for f in found.findings} == {("RACE001", "launch 2 (k)")}


def test_one_cluster_may_count_itself() -> None:
    text = LAST.replace("RESET", RESET).replace("ld.global.u32 %r6, [%a1+4];", "")
    one = {"grid": 1, "params": {"data": {"buffer": "data"}}}
    assert check(text, {"launches": [one] * 3, "buffers": {"data": {"bytes": 4}}}).verdict == "proved"


@pytest.mark.daily(days=3, least=0)
def test_a_variable_that_the_host_has_changed_is_not_known() -> None:
    assert answer_launches(RESET, 1, forgotten=["counter"]).verdict != "proved"


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize(("held", "proved"), [("00000000", True), ("01000000", False)])
def test_a_variable_holds_what_the_launch_gives(held: str, proved: bool) -> None:
    """Counted from one, the last CTA but one goes on."""
    found = answer_launches(RESET, 1, variables={"counter": {"init": {"hex": held}}})
    assert (found.verdict == "proved", {f.code for f in found.findings}) == (proved, set() if proved else {"RACE001"})
    assert not any("initialisers" in said for said in found.assumptions), "the launch says what it holds"


IDLE = """.visible .entry other() .reqntid 1, 1, 1 { ret; }
"""


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_what_the_host_changes_stays_changed(changed: int) -> None:
    """Whatever launches before have left, and though the launches behind do not say it again."""
    module = parse_module(LAST.replace("RESET", RESET) + IDLE)
    one = {"entry": "k", "grid": 3, "params": {"data": {"buffer": "data"}}}
    launches: list[dict[str, Any]] = [{"entry": "other", "grid": 1}, one, one]
    launches[changed] = {**launches[changed], "forgotten": ["counter"]}
    given = build_launches(module, from_object({"launches": launches, "buffers": {"data": {"bytes": 12}}}))
    study = LaunchStudy(module, given.launches, Limit(SECONDS))
    memory = "variable", "counter"
    assert study.begins_with(2).contents_of(memory) == Contents(memory, 0)


@pytest.mark.parametrize("programmatic", [False, True])
@pytest.mark.parametrize("changed", [0, 1, 2])
def test_what_the_host_gives_is_known_until_a_launch_writes_it(changed: int, programmatic: bool) -> None:
    """Launches before a programmatic one may write behind the host."""
    module = parse_module(LAST.replace("RESET", RESET) + IDLE)
    k = {"entry": "k", "grid": 3, "params": {"data": {"buffer": "data"}}}
    launches: list[dict[str, Any]] = [k, {"entry": "other", "grid": 1}, {**k, "programmatic": programmatic}]
    launches[changed] = {**launches[changed], "variables": {"counter": {"init": {"hex": "05000000"}}}}
    given = build_launches(module, from_object({"launches": launches, "buffers": {"data": {"bytes": 12}}}))
    contents = LaunchStudy(module, given.launches, Limit(SECONDS)).begins_with(2).contents_of(("variable", "counter"))
    known = [5] if changed == 1 else [] if programmatic else [8] if changed == 0 else [5]
    assert [int.from_bytes(data, "little") for _, data in contents.words] == known
    assert contents.forgotten == 0


def test_what_the_host_gives_one_gpu_is_not_known_where_another_one_writes() -> None:
    module = parse_module(
        LAST.replace("RESET", RESET).replace(
            ".global .align 4 .u32 counter", ".global .attribute(.managed) .align 4 .u32 counter"
        )
    )
    k = {
        "entry": "k",
        "grid": 3,
        "params": {"data": {"buffer": "data"}},
        "variables": {"counter": {"init": {"hex": "05000000"}}},
    }
    document = {
        "launches": [k, {**k, "gpu": 1, "params": {"data": {"buffer": "more"}}}],
        "buffers": {"data": {"bytes": 12}, "more": {"bytes": 12, "gpu": 1}},
    }
    study = LaunchStudy(module, build_launches(module, from_object(document)).launches, Limit(SECONDS))
    memory = "variable", "counter"
    assert [study.begins_with(k).contents_of(memory) for k in (0, 1)] == [Contents(memory, 0)] * 2


CONSTANT = """.version 8.7
.target sm_90
.address_size 64
.const .align 4 .u32 rows = 7;
.visible .entry other() .reqntid 1, 1, 1 { ret; }
.visible .entry k(.param .u64 data) .reqntid 1, 1, 1 {
.reg .pred %p; .reg .b32 %r<3>; .reg .b64 %a;
ld.param.u64 %a, [data]; ld.const.u32 %r1, [rows]; setp.eq.u32 %p, %r1, 7;
@%p ret;
mov.u32 %r2, %ctaid.x; st.global.u32 [%a], %r2;
ret; }
"""


@pytest.mark.parametrize("changed", [None, 0, 1])
def test_constants_that_the_host_has_changed_are_not_known(changed: int | None) -> None:
    launches: list[dict[str, Any]] = [
        {"entry": "other", "grid": 1}, {"entry": "k", "grid": 2, "params": {"data": {"buffer": "data"}}},
    ]  # fmt: skip
    if changed is not None:
        launches[changed]["forgotten"] = ["rows"]
    found = check(CONSTANT, {"launches": launches, "buffers": {"data": {"bytes": 4}}})
    assert (found.verdict == "proved") is (changed is None)


@pytest.mark.parametrize("rows", [7, 8])
def test_constants_hold_what_the_host_gives_in_all_launches_from_then_on(rows: int) -> None:
    launches: list[dict[str, Any]] = [
        {"entry": "other", "grid": 1, "variables": {"rows": {"init": {"hex": f"{rows:02x}000000"}}}},
        {"entry": "k", "grid": 2, "params": {"data": {"buffer": "data"}}},
    ]
    found = check(CONSTANT, {"launches": launches, "buffers": {"data": {"bytes": 4}}})
    assert (found.verdict == "proved", bool(found.findings)) == (rows == 7, rows != 7)


WIDE = """.version 8.7
.target sm_90
.address_size 64
.global .align 8 .u64 wide;
.visible .entry k() .reqntid 1, 1, 1 { .reg .b64 %a;
mov.u64 %a, wide; red.release.gpu.global.add.u64 [%a], 5; ret; }
.visible .entry upper() .reqntid 1, 1, 1 { .reg .b64 %a;
mov.u64 %a, wide; WRITE [%a+4], 1; ret; }
.visible .entry reader(.param .u64 data) .reqntid 1, 1, 1 {
.reg .pred %p; .reg .b32 %r<3>; .reg .b64 %a<3>;
ld.param.u64 %a1, [data]; mov.u64 %a2, wide;
ld.global.u32 %r1, [%a2]; setp.eq.u32 %p, %r1, EXPECTED;
@%p ret;
mov.u32 %r2, %ctaid.x; st.global.u32 [%a1], %r2;
ret; }
"""


@pytest.mark.parametrize(("expected", "verdict"), [(0, "finding"), (10, "proved")])
@pytest.mark.parametrize("write", ["st.global.u32", "red.release.gpu.global.add.u32"])
def test_a_launch_may_change_a_part_of_a_word_that_another_left(write: str, expected: int, verdict: str) -> None:
    text = WIDE.replace("WRITE", write).replace("EXPECTED", str(expected))
    reader = {"entry": "reader", "grid": 2, "params": {"data": {"buffer": "data"}}}
    launches = [{"entry": "k", "grid": 2}, {"entry": "upper", "grid": 1}, reader]
    assert check(text, {"launches": launches, "buffers": {"data": {"bytes": 4}}}).verdict == verdict


@pytest.mark.parametrize("seed", range(8))
def test_contents_are_those_of_a_list_of_bytes(seed: int) -> None:
    random = Random(seed)
    for _ in range(50):
        said: list[int | None] = [random.choice((None, 1, 2)) for _ in range(random.randrange(12))]
        contents, expected = Contents(("variable", "v")), said + [None] * (20 - len(said))
        for _ in range(random.randrange(6)):
            at = random.randrange(13)
            if random.random() < 0.4:
                contents, expected = contents.forgetting(at), expected[:at] + [None] * (20 - at)
            else:
                word = random.randbytes(random.choice((1, 2, 4, 7)))
                contents = contents.holding(at, word)
                expected[at : at + len(word)] = word
        given = bytes(v or 0 for v in said), bytes(UNKNOWN * (v is None) for v in said)
        found = [None if unknown else v for v, unknown in zip(*contents.apply(*given), strict=True)]
        assert found + [None] * (20 - len(found)) == expected


@pytest.mark.daily(days=4, least=0)
def test_a_variable_of_launches_that_may_overlap_is_not_known() -> None:
    assert answer_launches(RESET, programmatic=True).verdict != "proved"


# --- the sign of a word: the barrier of cooperative groups ------------------------------------------------------------

SYNC = """
bar.sync 0;
@%one bra DONE{n};
selp.b32 %r8, {first}, {other}, %zero;
atom.add.release.gpu.global.u32 %r5, [%a2], %r8;
WAIT{n}: ld.acquire.gpu.global.u32 %r6, [%a2];
xor.b32 %r7, %r6, %r5;
setp.gt.s32 %p, %r7, -1;
@%p bra WAIT{n};
DONE{n}: bar.sync 0;
"""
BARRIER = """.version 8.7
.target sm_90
.address_size 64
.global .align 4 .u32 counter;
.visible .entry k(.param .u64 data) .reqntid 2, 1, 1 {{
.reg .pred %p, %one, %zero; .reg .b32 %r<12>; .reg .b64 %a<9>;
ld.param.u64 %a1, [data];
mov.u32 %r9, %tid.x; setp.ne.u32 %one, %r9, 0;
mov.u32 %r1, %ctaid.x; mov.u32 %r3, %nctaid.x; setp.eq.u32 %zero, %r1, 0;
{place}
mad.lo.u32 %r2, %r1, 2, %r9; mul.wide.u32 %a3, %r2, 4; add.s64 %a3, %a1, %a3;
add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, %r3; mad.lo.u32 %r4, %r4, 2, %r9;
mul.wide.u32 %a4, %r4, 4; add.s64 %a4, %a1, %a4;
{body}
ret; }}
"""
IN_VARIABLE = "mov.u64 %a2, counter;"
IN_WORKSPACE = """mov.u32 %r10, %envreg2; mov.u32 %r11, %envreg1;
mov.b64 %a2, {%r10, %r11}; add.s64 %a2, %a2, 4;"""
OWN, NEXT = "st.global.u32 [%a3], 1;", "ld.global.u32 %r6, [%a4];"
TOP = 1 << 31


def synchronised(ctas: int, *parts: str, place: str = IN_VARIABLE, first: int | None = None, other: int = 1) -> str:
    """A module whose CTAs do these parts, with a barrier of the grid between any two."""
    amount = TOP - (ctas - 1) * other if first is None else first
    body = ""
    for n, part in enumerate(parts):
        body += (SYNC.format(n=n, first=amount % (1 << 32), other=other) if n else "") + part
    return BARRIER.format(place=place, body=body)


def ask(text: str, ctas: int, *, cooperative: bool = True) -> tuple[str | None, str]:
    """The answer that pairs of clusters give, or why there is none."""
    given = {"grid": ctas, "params": {"data": {"buffer": 8 * ctas}}}
    module, launch = build(text, given, cooperative=cooperative)
    found, why = say_why(lambda: answer_signalled(module, launch, partial(follow_pair, module), Limit(SECONDS)))
    return (None if found is None else found.verdict.value), why


@pytest.mark.daily
@pytest.mark.parametrize("place", [IN_VARIABLE, IN_WORKSPACE])
@pytest.mark.parametrize(("ctas", "parts"), [(3, (OWN, NEXT)), (12, (OWN, NEXT, OWN, NEXT))])
def test_a_barrier_by_the_sign_of_a_word_is_proved(ctas: int, parts: tuple[str, ...], place: str) -> None:
    assert ask(synchronised(ctas, *parts, place=place), ctas) == ("proved", "")


RIGHT = synchronised(5, OWN, NEXT, OWN, NEXT)
TWINS = {
    "a relaxed addition": (RIGHT.replace("add.release", "add.relaxed"), "releases nothing"),
    "a relaxed load": (RIGHT.replace("ld.acquire", "ld.relaxed"), "acquires nothing"),
    "the scope of a CTA": (RIGHT.replace("release.gpu", "release.cta"), ""),
    "no barrier of the CTA before": (RIGHT.replace("bar.sync 0;\n@%one", "@%one"), ""),
    "no barrier between": (synchronised(5, OWN, NEXT + OWN, NEXT), ""),
    "one CTA too few": (synchronised(5, OWN, NEXT, first=TOP - 3), "two signals of one word are not ordered"),
    "one CTA too many": (synchronised(5, OWN, NEXT, first=TOP - 5), "does not end"),
    "a number of which more is asked": (
        RIGHT.replace("xor.b32 %r7, %r6, %r5;", "xor.b32 %r7, %r6, %r5;\nst.global.u32 [%a3], %r5;"), "",
    ),
    "another addition of which more is asked": (
        RIGHT.replace(
            "ret; }", "atom.relaxed.gpu.global.add.u32 %r5, [%a2], 0;\nst.relaxed.gpu.global.u32 [%a3], %r5;\nret; }"
        ), "",
    ),
    "a number of which less is asked": (RIGHT.replace("setp.gt.s32 %p, %r7, -1", "setp.eq.u32 %p, %r7, 0"), ""),
}  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("name", TWINS)
def test_a_barrier_by_the_sign_of_a_word_that_is_wrong_is_not(name: str) -> None:
    text, why = TWINS[name]
    found, said = ask(text, 5)
    assert found == "finding" or (found is None and why in said)


def test_who_waits_at_a_barrier_has_to_be_resident() -> None:
    assert ask(synchronised(3, OWN, NEXT), 3, cooperative=False)[0] is None


def is_barrier(amounts: list[int], rounds: int) -> bool:
    """Whether CTAs that add these amounts, each as often, meet as often: every order of their steps is tried."""
    start = (0, tuple((0, 0) for _ in amounts))  # the word; of each CTA twice its rounds, and what it drew
    todo, seen = [start], {start}
    while todo:
        word, ctas = todo.pop()
        moved = False
        for k, (steps, drawn) in enumerate(ctas):
            if steps == 2 * rounds:
                continue
            if steps % 2 == 0:
                after = (word + amounts[k]) % (1 << 32), (steps + 1, word)
            elif (word ^ drawn) >> 31:
                if any(other < steps for other, _ in ctas):
                    return False  # it goes on before all have come
                after = word, (steps + 1, 0)
            else:
                continue
            moved = True
            following = after[0], (*ctas[:k], after[1], *ctas[k + 1 :])
            if following not in seen:
                seen.add(following)
                todo.append(following)
        if not moved and any(steps < 2 * rounds for steps, _ in ctas):
            return False
    return True


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.daily(days=6)
def test_barriers_that_are_proved_meet_in_every_order_of_steps(seed: int) -> None:
    random = Random(seed)
    ctas, rounds, other = random.choice((2, 3, 4)), random.choice((1, 2, 3)), random.choice((1, 1, 2, 3, TOP))
    first = TOP - (ctas - 1) * other + random.choice((0, 0, 0, -1, 1, TOP, 7))
    text = synchronised(ctas, *((OWN, NEXT) * 2)[: rounds + 1], first=first, other=other)
    right = is_barrier([first % (1 << 32)] + [other] * (ctas - 1), rounds)
    found, why = ask(text, ctas)
    assert found is None or right, why
    plain = other < TOP and first == TOP - (ctas - 1) * other
    assert found == "proved" or not plain, why
