"""Any number of rounds, and values that threads hand over, or on to later rounds, through shared memory."""

from __future__ import annotations

import pytest

from mcheck import ptx
from mcheck.checking.run.result import Result

KERNEL = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u32 rounds)
.reqntid 2, 1, 1
{{
.reg .pred %p, %z;
.reg .b32 %r<12>;
.shared .align 16 .b8 sh[128];
ld.param.u32 %r0, [rounds];
mov.u32 %r1, %tid.x;
setp.eq.u32 %z, %r1, 0;
mov.u32 %r2, 0;
shl.b32 %r3, %r1, 2;
mov.u32 %r4, sh;
add.u32 %r3, %r3, %r4;
{first}
bar.sync 0;
L: setp.ge.u32 %p, %r2, %r0;
@%p bra E;
{body}
@%p bra N;
@%z st.shared.u32 [sh+64], 1;
@!%z ld.shared.u32 %r9, [sh+64];
N: bar.sync 0;
add.u32 %r2, %r2, 1;
bra L;
E: {behind}
ret;
}}
"""
"""The threads race in a round in which ``p`` does not hold."""
KEPT = "@%z st.shared.u32 [sh], 7;"
COUNTS = (
    "ld.shared.u32 %r5, [sh];\nbar.sync 0;\nadd.u32 %r6, %r5, 1;\n@%z st.shared.u32 [sh], %r6;\n"
    "setp.ne.u32 %p, %r5, {};"
)
OWN = "ld.shared.u32 %r5, [%r3];\nadd.u32 %r6, %r5, 1;\nst.shared.u32 [%r3], %r6;\nsetp.ne.u32 %p, %r5, {};"
"""Each thread has a counter of its own."""
LATE = {
    "a counter": ("@%z st.shared.u32 [sh], 0;", COUNTS.format(300)),
    "a counter of each thread": ("st.shared.u32 [%r3], 0;", OWN.format(300)),
    "a counter that is first written in the loop": (
        "", f"setp.eq.u32 %p, %r2, 0;\n@%p st.shared.u32 [%r3], 0;\n{OWN.format(300)}",
    ),
    "a counter behind a barrier": (
        "@%z st.shared.u32 [sh], 0;",
        f"@%z st.shared.u32 [sh+32], 5;\nbar.sync 0;\nld.shared.u32 %r8, [sh+32];\n{COUNTS.format(300)}",
    ),
    "the number of the round": (
        "", f"@%z st.shared.u32 [sh], %r2;\nbar.sync 0;\n{COUNTS.split('add', maxsplit=1)[0]}setp.ne.u32 %p, %r5, 300;",
    ),
}  # fmt: skip
STEADY = {
    "a number that is stored once": (KEPT, "ld.shared.u32 %r5, [sh];\nsetp.ne.u32 %p, %r5, 300;"),
    "the same number in each round": (
        "", f"{KEPT}\nbar.sync 0;\nld.shared.u32 %r5, [sh];\nbar.sync 0;\nsetp.ne.u32 %p, %r5, 300;",
    ),
}  # fmt: skip


SHARED = (
    "@%z st.shared.u32 [sh+96], 1;\nbar.sync 0;\nld.shared.u32 %r5, [sh+96];\nsetp.eq.u32 %p, %r5, 0;\n"
    "@%p bra E;\nbar.sync 0;\n{}\nsetp.eq.u32 %p, %r0, %r0;"
)
"""Values of shared memory decide, so that a store of what is known counts as one of its value."""
LATE_LANES = {
    "from a round on": "setp.ge.u32 %p, %r2, 300;\nselp.u32 %r5, %r1, 0, %p;\nst.shared.u32 [sh], %r5;",
    "from a number on": "mul.lo.u32 %r5, %r1, %r0;\nshr.u32 %r5, %r5, 13;\nst.shared.u32 [sh], %r5;",
}


LAG = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u32 rounds)
.reqntid 33, 1, 1
{{
.reg .pred %p, %q, %z;
.reg .b32 %r<12>;
.shared .align 16 .b8 sh[128];
ld.param.u32 %r0, [rounds];
mov.u32 %r1, %tid.x;
setp.eq.u32 %z, %r1, 0;
@%z st.shared.u32 [sh], 5;
mov.u32 %r2, 0;
bar.sync 0;
setp.ge.u32 %p, %r1, 32;
@%p bra B;
A: setp.ge.u32 %p, %r2, %r0;
@%p bra AE;
{ahead}
bar.sync 0;
bar.sync 0;
add.u32 %r2, %r2, 1;
bra A;
AE: {ahead_end}
{lag}
bra E;
B: {behind_begin}
L: setp.ge.u32 %p, %r2, %r0;
@%p bra E;
{behind}
bar.sync 0;
bar.sync 0;
add.u32 %r2, %r2, 1;
bra L;
E: ret;
}}
"""
"""A warp whose rounds are behind those of another one."""
ROUND = "bar.sync 0;\nbar.sync 0;\n"
BEHIND = 8
"""By how many rounds."""
TOO_EARLY = {
    "what the last rounds store is loaded before the first one": {
        "ahead": (
            "sub.u32 %r3, %r0, %r2;\nsetp.le.u32 %q, %r3, 4;\nselp.u32 %r4, 5, 6, %q;\n"
            "@%z st.shared.u32 [sh], %r4;\n@%z st.shared.u32 [sh+8], 1;"
        ),
        "ahead_end": "",
        "behind_begin": f"{ROUND * (BEHIND - 1)}bar.sync 0;\nld.shared.u32 %r5, [sh];\nbar.sync 0;",
        "behind": (
            "setp.ge.u32 %q, %r2, 150;\nsetp.eq.u32 %z, %r5, 6;\nand.pred %q, %q, %z;\n"
            "@%q st.shared.u32 [sh+8], 2;"
        ),
    },
    "what is stored before the first round is loaded behind the last one": {
        "ahead": "@%z st.shared.u32 [sh+8], 1;",
        "ahead_end": (
            "bar.sync 0;\nld.shared.u32 %r5, [sh];\nbar.sync 0;\nsetp.ge.u32 %p, %r0, 150;\nsetp.eq.u32 %q, %r5, 6;\n"
            "and.pred %q, %q, %p;\n@%q st.shared.u32 [sh+16], 2;"
        ),
        "behind_begin": f"{ROUND * (BEHIND - 1)}st.shared.u32 [sh], 6;\n{ROUND}",
        "behind": "st.shared.u32 [sh+16], 2;",
    },
}  # fmt: skip
"""Values that are others with a larger number only, as one warp is in its last rounds while the other one begins."""


def checked(first: str, body: str, rounds: object = "any", behind: str = "", threads: int = 2) -> Result:
    text = KERNEL.format(first=first, body=body, behind=behind).replace(".reqntid 2", f".reqntid {threads}")
    return ptx.check(text, {"grid": [1], "block": [threads], "params": {"rounds": rounds}})


@pytest.mark.parametrize(("first", "body"), STEADY.values(), ids=STEADY)
def test_what_stays_the_same_is_proved(first: str, body: str) -> None:
    found = checked(first, body)
    assert found.verdict == "proved", found.reason


@pytest.mark.parametrize(("first", "body"), LATE.values(), ids=LATE)
def test_what_counts_in_memory_is_not(first: str, body: str) -> None:
    assert checked(first, body).verdict == "unknown"
    assert checked(first, body, 302).verdict == "finding"


def test_a_number_that_is_replaced_behind_the_loop() -> None:
    """Only what stores behind the last round, after all have loaded, may store something else."""
    first, body = STEADY["a number that is stored once"]
    behind = "bar.sync 0;\n@%z st.shared.u32 [sh], 8;\nbar.sync 0;\nld.shared.u32 %r5, [sh];"
    found = checked(first, body, behind=behind)
    assert found.verdict == "proved", found.reason


@pytest.mark.parametrize("stores", LATE_LANES.values(), ids=LATE_LANES)
def test_warps_that_store_different_values_later_do_not_count_as_one(stores: str) -> None:
    body = SHARED.format(stores)
    assert checked("", body, threads=33).verdict == "unknown"
    found = checked("", body, 302, threads=33)
    assert found.verdict == "finding", found.reason


def test_warps_that_store_the_same_count_as_one() -> None:
    found = checked("", SHARED.format("st.shared.u32 [sh], 7;"), threads=33)
    assert found.verdict == "proved", found.reason


@pytest.mark.parametrize("parts", TOO_EARLY.values(), ids=TOO_EARLY)
def test_first_rounds_that_meet_last_ones_say_nothing_of_larger_numbers(parts: dict[str, str]) -> None:
    lag = ROUND * (BEHIND - ("bar" in parts["ahead_end"]))
    text = LAG.format(lag=lag, **parts)
    verdicts = [
        ptx.check(text, {"grid": [1], "block": [33], "params": {"rounds": n}}).verdict for n in ("any", BEHIND, 200)
    ]
    assert verdicts == ["unknown", "proved", "finding"]
