"""Counters of unknown contents: every thread that counts gets a number of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.checking.modules import cluster_groups
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module

TEXT = """.version 8.5
.target sm_90a
.address_size 64
.extern .global .align 4 .u32 count;
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  COUNT
  @%p1 bra DONE;
  USE
DONE:
  ret;
}
"""
LAST = "atom.global.add.u32 %r3, [count], 1; setp.ne.u32 %p1, %r3, 63;"


def ask(
    count: str, use: str, *, grid: int = 1, threads: int = 64, size: int | None = 256, seconds: float = 60,
    contents: int | None = None,
) -> Answer:  # fmt: skip
    """The answer about a kernel whose threads count, and some of which go on."""
    text = (
        TEXT
        if contents is None
        else TEXT.replace(".extern .global .align 4 .u32 count", f".global .u32 count = {contents}")
    )
    read = parse_module(text.replace("COUNT", count).replace("USE", use))
    given = {"grid": [grid], "block": [threads], "params": {"out": {"buffer": size}}}
    question = Question(about=Completeness.FINDINGS, timeout=seconds)
    return answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)


@pytest.mark.daily(days=4, least=0)
@pytest.mark.parametrize("grid", [1, 4])
def test_one_thread_is_the_last(grid: int) -> None:
    found = ask(LAST, "st.global.u32 [%rd1], %r2;", grid=grid)
    assert found.verdict == "bounded", found.findings
    assert (
        ':14:3: the launch does not give the initial value of this counter ("init" of its buffer): 0 was assumed'
        in (found.reason or "")
    )


@pytest.mark.daily(one_of="heavy")
def test_the_last_one_knows_nothing_of_what_the_others_did_before_they_counted() -> None:
    use = "ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd1], %r4;"
    found = ask(f"st.global.u32 [%rd3], 1; {LAST}", use)
    assert "RACE001" in {f.code for f in found.findings}
    assert not ask(f"st.global.u32 [%rd3], 1; fence.acq_rel.gpu; {LAST} fence.acq_rel.gpu;", use).findings


@pytest.mark.daily(one_of="heavy")
def test_the_last_thread_of_the_grid_may_be_one_of_this_cluster() -> None:
    """The number that it compares with is one that 4 CTAs reach together, and one alone does not."""
    count = LAST.replace("63", "255")
    found = ask(f"st.global.u32 [%rd3], 1; {count}", "ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd1], %r4;", grid=4)
    assert "RACE001" in {f.code for f in found.findings}
    assert not ask(count, "st.global.u32 [%rd1], %r2;", grid=4).findings


@pytest.mark.daily
@pytest.mark.parametrize("test", ["rem.u32 %r3, %r3, 64; setp.ne.u32 %p1, %r3, 63;", "setp.lt.u32 %p1, %r3, 63;"])
def test_what_is_computed_of_the_number_is_that_of_one_thread(test: str) -> None:
    found = ask(f"atom.global.add.u32 %r3, [count], 1; {test}", "st.global.u32 [%rd1], %r2;", grid=2)
    assert {f.code for f in found.findings} == {"RACE001"}, (
        "two CTAs have such a thread, and all may be beyond a number"
    )
    found = ask(f"atom.global.add.u32 %r3, [count], 1; {test}", "st.global.u32 [%rd1], %r2;")
    assert {f.code for f in found.findings} == ({"RACE001"} if "lt" in test else set())


def test_places_that_are_counted_are_places_of_their_own() -> None:
    count = "atom.global.add.u32 %r3, [count], 1; setp.ge.u32 %p1, %r3, 64; mul.wide.u32 %rd4, %r3, 4;"
    use = "add.s64 %rd5, %rd1, %rd4; st.global.u32 [%rd5], %r2;"
    assert not ask(count, use).findings
    shared = count.replace("mul.wide.u32 %rd4, %r3, 4;", "shr.u32 %r4, %r3, 1; mul.wide.u32 %rd4, %r4, 4;")
    assert {f.code for f in ask(shared, use).findings} == {"RACE001"}


@pytest.mark.daily(one_of="heavy")
@pytest.mark.parametrize(("grid", "contents"), [(1, None), (4, None), (1, 0), (1, 254)])
def test_whether_a_counter_comes_far_enough_depends_on_what_it_holds_at_first(
    grid: int, contents: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads of each CTA count, and wait until it is 256."""
    monkeypatch.setattr(cluster_groups, "GROUP_SECONDS", 2.0)
    monkeypatch.setattr(cluster_groups, "ERRORS_SECONDS", 2.0)
    spin = "atom.acq_rel.gpu.global.add.u32 %r3, [count], 1; AGAIN: ld.acquire.gpu.global.u32 %r4, [count];"
    count = f"{spin} setp.lt.u32 %p1, %r4, 256; @%p1 bra AGAIN; setp.ne.u32 %p1, %r3, 0;"
    found = ask(count, "", grid=grid, threads=2, contents=contents, seconds=10)
    if contents is None:
        assert not found.findings
        depends = "whether this wait ends depends on what count holds at first"
        said = depends if grid == 1 else "the initial value of a word that clusters look at is not given"
        assert said in (found.reason or "")
    else:
        assert [f.code for f in found.findings] == ([] if contents else ["DEAD004"])


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that clusters get to be followed together, each time that they are."""
    together = cluster_groups._answer_together
    found: list[float] = []

    def follow(launch: Any, first: Any, follow: Any, question: Any, limit: Limit) -> Answer:
        found.append(round(limit.left() or 0, 9))  # what is left of 3 s at once may be 3.000000000000001
        return together(launch, first, follow, question, limit)

    monkeypatch.setattr(cluster_groups, "_answer_together", follow)
    return found


@pytest.mark.parametrize(("contents", "most"), [(None, 10.0), (0, 3.0)])
def test_of_a_counter_that_is_not_given_clusters_are_followed_for_errors_alone(
    contents: int | None, most: float, shares: list[float]
) -> None:
    """Three seconds are the share before pairs are asked about, which prove nothing of contents that are assumed."""
    found = ask(LAST.replace("63", "3"), "st.global.u32 [%rd1], %r2;", grid=4, threads=1, contents=contents)
    assert found.verdict == ("bounded" if contents is None else "proved"), found.reason
    assert [most - 1 < share <= most for share in shares] == [True]


@pytest.mark.parametrize(("counts", "most"), [("", 20.0), ("red.relaxed.gpu.global.add.u32 [count], 1;", 3.0)])
def test_clusters_that_cannot_tell_each_other_anything_have_the_time_for_groups_at_once(
    counts: str, most: float, shares: list[float]
) -> None:
    """Three seconds are the share before pairs are asked about. The address of the store is not known."""
    use = "mad.wide.u32 %rd3, %r3, 4, %rd1; st.global.u32 [%rd3], %r2;"
    count = f"{counts} setp.eq.u32 %p1, %r2, 99; ld.global.u32 %r3, [%rd1];"
    assert ask(count, use, grid=4, threads=1, contents=0, seconds=30).verdict == "bounded"
    assert [most - 1 < share <= most for share in shares] == [True]


@pytest.mark.daily(one_of="heavy")
def test_many_threads_count_in_little_time() -> None:
    found = ask(LAST.replace("63", "383"), "st.global.u32 [%rd1], %r2;", threads=384)
    assert found.verdict == "bounded", found.reason


def test_what_the_launch_gives_of_a_buffer_may_be_its_beginning() -> None:
    text = TEXT.replace("COUNT", LAST.replace("count", "%rd1")).replace("USE", "st.global.u32 [%rd1+16], %r2;")
    read = parse_module(text)
    init = {"buffer": 64, "init": {"hex": "00000000"}}
    given = json.loads(json.dumps({"grid": [1], "block": [64], "params": {"out": init}}))
    question = Question(about=Completeness.FINDINGS, timeout=60)
    found = answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)
    assert not found.findings
    assert found.verdict == "bounded"
    assert "was assumed" not in (found.reason or "")
