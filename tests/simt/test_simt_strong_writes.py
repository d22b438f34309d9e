"""Strong writes of several threads to one word, which do not race: what a weak load behind a barrier returns depends on
their order, of which one is followed.
"""

from __future__ import annotations

import pytest

from mcheck.ptx import check

KERNEL = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
.reqntid 64, 1, 1
{{
  .reg .pred %p, %q;
  .reg .b32 %r<8>;
  .reg .b64 %a;
  .shared .align 4 .b32 word;
  ld.param.u64 %a, [out];
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p, %r1, 0;
  setp.eq.u32 %q, %r1, 33;
  {writes}
  bar.sync 0;
  ld.shared.u32 %r2, [word];
  setp.ne.u32 %p, %r2, {value};
  @%p bra DONE;
  st.global.u32 [%a], %r1;
DONE:
  ret;
}}
"""
"""All threads race if the word holds ``value``."""
STORES = "@%p st.relaxed.cta.shared.u32 [word], 2; @%q st.relaxed.cta.shared.u32 [word], {0};"
SOME_ORDER = {
    "two values": (STORES.format(0), "02"),
    "volatile": ("@%p st.volatile.shared.u32 [word], 2; @%q st.volatile.shared.u32 [word], 0;", "02"),
    "an atomic and a store": ("@%p st.relaxed.cta.shared.u32 [word], 2; @%q red.shared.and.b32 [word], 1;", "02"),
    "two exchanges": ("@%p atom.shared.exch.b32 %r3, [word], 2; @%q atom.shared.exch.b32 %r3, [word], 0;", "02"),
    "two kinds of atomics": (
        """@%p st.shared.u32 [word], 1; bar.sync 0;
        @%p red.shared.add.u32 [word], 1; @%q red.shared.and.b32 [word], 1;""",
        "01",
    ),
    "an atomic and one, and a store": (
        """@%p st.shared.u32 [word], 0; bar.sync 0; @%q red.shared.add.u32 [word], 1;
        @%p red.shared.add.u32 [word], 1; @%p st.relaxed.cta.shared.u32 [word], 5;""",
        "56",
    ),
    "an atomic, and a store and one": (
        """@%p st.shared.u32 [word], 0; bar.sync 0; @%q red.shared.add.u32 [word], 1;
        @%p st.relaxed.cta.shared.u32 [word], 5; @%p red.shared.add.u32 [word], 1;""",
        "67",
    ),
    "minima of signed and unsigned numbers": (
        """@%p st.shared.u32 [word], 0xffffffff; bar.sync 0;
        @%p red.shared.min.u32 [word], 5; @%q red.shared.min.s32 [word], 3;""",
        "35",
    ),
    "one of two exits": (
        """@%q st.relaxed.cta.shared.u32 [word], 2; @%q exit; bar.sync 0; @%p st.relaxed.cta.shared.u32 [word], 0;""",
        "02",
    ),
}
ONE_ORDER = {
    "one value": (STORES.format(2), "0"),
    "a barrier between": (STORES.format(0).replace("; @%q", "; bar.sync 0; @%q"), "2"),
    "a weak store behind": (STORES.format(0) + " bar.sync 0; @%p st.shared.u32 [word], 0;", "2"),
    "a strong store behind": (STORES.format(0) + " bar.sync 0; @%p st.relaxed.cta.shared.u32 [word], 0;", "2"),
    "a barrier and a strong store behind three writes": (
        STORES.format(0) + "@%q red.shared.add.u32 [word], 1; bar.sync 0; @%p st.relaxed.cta.shared.u32 [word], 0;",
        "2",
    ),
    "atomics that commute": (
        """@%p st.shared.u32 [word], 0; bar.sync 0;
        @%p red.shared.add.u32 [word], 1; @%q red.shared.add.u32 [word], 2;""",
        "1",
    ),
}


def verdict(writes: str, value: str) -> str:
    """The verdict about a kernel whose threads race if a word holds a value."""
    text = KERNEL.format(writes=writes, value=value)
    return check(text, {"grid": 1, "block": 64, "params": {"out": {"buffer": 4}}}).verdict


@pytest.mark.daily(days=3)
@pytest.mark.parametrize("name", SOME_ORDER)
def test_what_some_order_leaves_is_not_taken_for_what_all_leave(name: str) -> None:
    writes, values = SOME_ORDER[name]
    assert "proved" not in {verdict(writes, value) for value in values}


@pytest.mark.parametrize("name", ONE_ORDER)
def test_what_every_order_leaves_is_followed(name: str) -> None:
    writes, values = ONE_ORDER[name]
    assert {verdict(writes, value) for value in values} == {"proved"}


CLUSTER = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k()
.reqntid 96, 1, 1
{{
  .reg .pred %p, %q, %late;
  .reg .b32 %r<4>;
  .shared .align 4 .b32 word;
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p, %r1, 0;
  setp.eq.u32 %q, %r1, 32;
  setp.ge.u32 %late, %r1, 64;
  @%late bra LATE;
  {first}
  barrier.cluster.wait;
  @%q st.relaxed.cluster.shared.u32 [word], 2;
  bra READ;
LATE:
  barrier.cluster.arrive;
  barrier.cluster.wait;
READ:
  bar.sync 0;
  ld.shared.u32 %r2, [word];
  setp.eq.u32 %p, %r2, {value};
  @%p bar.sync 1, 128;
  ret;
}}
"""
"""All threads wait forever at barrier 1 if the word holds ``value``."""
FIRST = "@%p st.relaxed.cluster.shared.u32 [word], 1;"


@pytest.mark.parametrize(
    ("first", "is_ordered"),
    [
        (f"{FIRST} barrier.cluster.arrive;", True),
        (f"{FIRST} barrier.cluster.arrive.release;", True),
        (f"{FIRST} barrier.cluster.arrive.relaxed;", False),
        (f"barrier.cluster.arrive; {FIRST}", False),
    ],
)
def test_the_barrier_of_a_cluster_orders_what_an_arrival_releases(first: str, *, is_ordered: bool) -> None:
    """What comes between an arrival and its wait, or before a relaxed one, may come last."""
    found = check(CLUSTER.format(first=first, value=1), {"grid": 1, "block": 96, "params": {}})
    assert (found.verdict == "proved") is is_ordered


UNFOLLOWED = """.version 8.7
.target sm_90
.address_size 64
.global .align 16 .f32 word[4];
.visible .entry k()
.reqntid 64, 1, 1
.reqnctapercluster 2, 1, 1
{{
  .reg .pred %p, %q;
  .reg .b32 %r<8>;
  .reg .f32 %f1;
  .shared .align 4 .u32 said;
  .shared .align 8 .b64 bar;
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p, %r1, 0;
  setp.eq.u32 %q, %r1, 32;
  mov.u32 %r2, 3;
  mov.b32 %f1, %r2;
  @%p st.shared.u32 [said], 0;
  @%p mbarrier.init.shared.b64 [bar], 1;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  mov.u32 %r3, %cluster_ctarank;
  xor.b32 %r3, %r3, 1;
  mov.u32 %r4, said;
  mapa.shared::cluster.u32 %r4, %r4, %r3;
  mov.u32 %r5, bar;
  mapa.shared::cluster.u32 %r5, %r5, %r3;
  {writes}
  barrier.cluster.arrive;
  barrier.cluster.wait;
  {read}
  setp.eq.u32 %p, %r6, {value};
  @%p bar.sync 1, 96;
  ret;
}}
"""
"""All threads wait forever at barrier 1 if what is read is ``value``."""
VECTOR = """setp.eq.and.u32 %p, %r3, 1, %p; setp.eq.and.u32 %q, %r3, 1, %q;
  @%p red.relaxed.gpu.global.add.v2.f32 [word], {%f1, %f1};"""
BESIDE = "@%q st.relaxed.gpu.global.u32 [word], 1;"
REMOTE = """@%p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 4;
  @%p red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], %r2, [%r5];
  @%q st.relaxed.cluster.shared.u32 [said], 2;
WAIT:
  mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p, [bar], 0;
  @!%p bra WAIT;"""


@pytest.mark.parametrize(
    ("writes", "read", "other"),
    [
        (VECTOR + BESIDE, "ld.global.u32 %r6, [word];", 4),
        (REMOTE, "ld.shared.u32 %r6, [said];", 5),
    ],
)
def test_a_store_may_come_before_a_reduction_whose_value_is_not_followed(writes: str, read: str, other: int) -> None:
    found = check(UNFOLLOWED.format(writes=writes, read=read, value=other), {"grid": 2, "params": {}})
    assert (found.verdict, found.findings) == ("bounded", ())


MULTIMEM = """.version 9.5
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 one, .param .u64 all)
.reqntid 64, 1, 1
{{
  .reg .pred %p, %q;
  .reg .b32 %r<8>;
  .reg .b64 %a<3>;
  ld.param.u64 %a1, [one];
  ld.param.u64 %a2, [all];
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p, %r1, 0;
  setp.eq.u32 %q, %r1, 32;
  @%p multimem.st.relaxed.gpu.global.u32 [%a2], 1;
  @%q multimem.{second} [%a2], 2;
  fence.proxy.alias;
  bar.sync 0;
  ld.global.u32 %r2, [%a1];
  setp.eq.u32 %p, %r2, 1;
  @%p bar.sync 1, 96;
  ret;
}}
"""
COPIES = {
    "one": {"bytes": 4, "init": {"hex": "00000000"}},
    "other": {"bytes": 4, "gpu": 1, "init": {"hex": "00000000"}},
    "all": {"multicast": ["one", "other"]},
}


@pytest.mark.parametrize("second", ["st.relaxed.gpu.global.u32", "red.relaxed.gpu.global.add.u32"])
def test_strong_accesses_of_all_copies_come_in_any_order(second: str) -> None:
    launch = {"entry": "k", "grid": 1, "params": {"one": {"buffer": "one"}, "all": {"buffer": "all"}}}
    found = check(MULTIMEM.format(second=second), {"launches": [launch], "buffers": COPIES})
    assert (found.verdict, found.findings) == ("bounded", ())


def test_a_store_of_128_bits_orders_no_word_beside_it() -> None:
    kernel = KERNEL.replace(".align 4 .b32 word;", ".align 16 .b8 row[32];\n  .reg .b128 %v;").replace(
        "[word]", "[row+16]"
    )
    writes = STORES.format(0).replace("[word]", "[row+16]")
    wide = "bar.sync 0; mov.b128 %v, {%a, %a}; @%p st.shared.b128 [row], %v;"
    launch = {"grid": 1, "block": 64, "params": {"out": {"buffer": 4}}}
    found = [check(kernel.format(writes=writes + wide, value=value), launch).verdict for value in "02"]
    assert "proved" not in found


MATRIX = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 flag)
.reqntid 256, 1, 1
{
  .reg .b32 %r<9>;
  .reg .f32 %f<19>;
  .reg .b64 %rd<9>;
  .reg .pred %p<5>;
  .shared .align 128 .b8 a[8192];
  .shared .align 4 .b32 said;
  ld.param.u64 %rd2, [flag];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, 128;
  @%p1 bra WRITER;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra READ;
  ld.relaxed.cta.global.u32 %r4, [%rd2];
  SEEN
  st.shared.u32 [said], %r4;
READ:
  bar.sync 1, 128;
  ld.shared.u32 %r4, [said];
  mov.u32 %r3, a;
  mad.lo.u32 %r3, %r4, 4096, %r3;
  cvt.u64.u32 %rd1, %r3;
  shr.u64 %rd1, %rd1, 4;
  or.b64 %rd1, %rd1, 0x0000000800080000;
  mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd1, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  ret;
WRITER:
  setp.ne.u32 %p3, %r2, 128;
  @%p3 ret;
  st.shared.u32 [a+4096], 1;
  st.relaxed.cta.global.u32 [%rd2], 1;
  ret;
}
"""


@pytest.mark.daily
@pytest.mark.parametrize(
    ("seen", "found"), [("", "finding"), ("mov.u32 %r4, 1;", "finding"), ("mov.u32 %r4, 0;", "proved")]
)
def test_a_descriptor_that_was_read_from_another_thread_may_be_any_that_was_written(seen: str, found: str) -> None:
    """A warpgroup multiplies the second half of the matrices, which another warp writes, if it has read 1."""
    flag = {"buffer": 16, "init": {"hex": "00" * 16}}
    given = check(MATRIX.replace("SEEN", seen), {"grid": 1, "block": 256, "params": {"flag": flag}})
    assert given.verdict == found, (given.reason, given.findings)
    assert {f.code for f in given.findings} == ({"RACE003"} if found == "finding" else set())


TABLE = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 flag, .param .u64 out)
.reqntid 2, 1, 1
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %a<8>;
  .local .align 8 .b32 row[2];
  ld.param.u64 %a1, [flag];
  ld.param.u64 %a2, [out];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra WRITER;
  READ
  st.local.u32 [row], 0;
  st.local.u32 [row+4], 0;
  mov.u64 %a3, row;
  and.b32 %r2, %r2, 1;
  mul.wide.u32 %a4, %r2, 4;
  add.s64 %a3, %a3, %a4;
  st.local.u32 [PLACE], 1;
  ld.local.u32 %r3, [row+4];
  setp.ne.u32 %p2, %r3, 1;
  @%p2 ret;
  ld.global.u32 %r4, [%a2];
  ret;
WRITER:
  st.global.u32 [%a2], 7;
  st.relaxed.cta.global.u32 [%a1], 1;
  ret;
}
"""


@pytest.mark.parametrize(("place", "found"), [("%a3", "finding"), ("row", "proved")])
@pytest.mark.parametrize("read", ["ld.relaxed.cta.global.u32 %r2, [%a1];", "ld.global.u32 %r2, [%a2+4];"])
def test_a_store_at_an_index_may_change_any_word_of_local_memory(read: str, place: str, found: str) -> None:
    """The index is what another thread has written, or data."""
    params = {"flag": {"buffer": 4, "init": {"hex": "00000000"}}, "out": {"buffer": 8}}
    given = check(TABLE.replace("READ", read).replace("PLACE", place), {"grid": 1, "block": 2, "params": params})
    assert given.verdict == found, (given.reason, given.findings)


BROADCAST = KERNEL.replace("ld.shared.u32 %r2, [word];", "ld.volatile.shared.u32 %r2, [word]; {behind}")
ONE_WRITER = "@%p st.volatile.shared.u32 [word], 2;"


@pytest.mark.parametrize(("value", "verdict"), [("0", "proved"), ("2", "finding")])
@pytest.mark.parametrize("behind", ["", "bar.sync 0; @%q st.volatile.shared.u32 [word], 0;"])
def test_what_one_thread_tells_all_by_strong_accesses_is_followed(value: str, verdict: str, behind: str) -> None:
    """Barriers order the loads of all threads, more than are followed with several values each."""
    text = BROADCAST.format(writes=ONE_WRITER, value=value, behind=behind)
    assert check(text, {"grid": 1, "params": {"out": {"buffer": 4}}}).verdict == verdict


@pytest.mark.parametrize("behind", ["@%q st.volatile.shared.u32 [word], 0;", "@%q red.shared.and.b32 [word], 0;"])
def test_what_is_written_without_a_barrier_may_be_what_was_told(behind: str) -> None:
    text = BROADCAST.format(writes=ONE_WRITER, value="0", behind=behind)
    assert check(text, {"grid": 1, "params": {"out": {"buffer": 4}}}, timeout=2).verdict != "proved"
