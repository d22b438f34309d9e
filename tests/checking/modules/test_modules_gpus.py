"""Launches on different GPUs: which are followed together, what orders them, what is said if they are not."""

from __future__ import annotations

from typing import Any

import pytest

from mcheck.base.budget import Limit, TimeOut
from mcheck.base.reasons import share_reason
from mcheck.cat.ast import Model
from mcheck.checking.modules.answer import follow_clusters
from mcheck.checking.modules.launches import concurrent_launches, launch_study
from mcheck.checking.policy.question import Question
from mcheck.checking.run.result import Result
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.launch_reader import from_object
from mcheck.frontend.ptx.launch_sequence_reader import build_launches
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.module_copies import owner_of, with_copy, written_name
from mcheck.frontend.ptx.reader import parse_module
from tests.checking.modules.stream_kernels import HEAD, READ, WRITE, checked, kernel, launch

ONE = {"grid": 1, "programmatic": False}
ZERO = {"init": {"hex": "00000000"}}


def spin(where: str, value: int = 1, scope: str = "sys") -> tuple[str, ...]:
    """The lines that wait for a word."""
    load = f"ld.acquire.{scope}.global.u32 %r5, [{where}];"
    return f"WAIT{value}:", load, f"setp.ne.u32 %p1, %r5, {value};", f"@%p1 bra WAIT{value};"


def signal(where: str, value: int = 1, scope: str = "sys") -> str:
    return f"st.release.{scope}.global.u32 [{where}], {value};"


def send(scope: str = "sys") -> str:
    """A kernel of one thread that writes a word of ``x`` and sets the flag ``y``."""
    return kernel("send", WRITE, signal("%rd4", scope=scope), width=1)


def receive(scope: str = "sys") -> str:
    return kernel("receive", *spin("%rd4", scope=scope), READ, width=1)


def message(module: str, *, gpus: tuple[int, int] = (0, 1), **more: object) -> Result:
    """A message from one GPU to the other."""
    sender, receiver = (launch(name, "a", "b", gpu=g) | ONE for name, g in zip(("send", "receive"), gpus, strict=True))
    return checked(module, sender, receiver, b=ZERO, **more)  # type: ignore[arg-type]


def test_a_message_at_scope_sys() -> None:
    found = message(send() + receive())
    assert (found.verdict, found.findings) == ("proved", ())
    assert (found.covers.clusters, found.covers.total, found.covers.together) == (2, 2, 2)
    assert [one.verdict for one in found.launches] == ["proved", "proved"]
    assert "all clusters of the launches on GPU 0 and GPU 1 were checked together" in found.assumptions
    assert any("each of these GPUs begins its launch at once" in text for text in found.assumptions)


@pytest.mark.parametrize("scopes", [("gpu", "sys"), ("sys", "gpu"), ("cta", "cta")])
def test_a_scope_that_does_not_reach_the_other_gpu(scopes: tuple[str, str]) -> None:
    found = message(send(scopes[0]) + receive(scopes[1]))
    assert found.verdict == "finding"
    assert {f.code for f in found.findings} <= {"RACE001", "RACE010"}
    threads = {a.thread for f in found.findings for a in f.accesses}
    assert threads == {"gpu0.warp0[0]", "gpu1.warp0[0]"}
    assert all(f.message.startswith("launch 1 (send), launch 2 (receive): ") for f in found.findings)


def test_gpus_have_the_numbers_of_the_file() -> None:
    found = message(send("gpu") + receive(), gpus=(5, 2))
    assert {a.thread for f in found.findings for a in f.accesses} == {"gpu5.warp0[0]", "gpu2.warp0[0]"}


@pytest.mark.daily(one_of="heavy")
def test_a_wait_that_nobody_ends() -> None:
    found = message(kernel("send", WRITE, width=1) + receive())
    assert [f.code for f in found.findings] == ["DEAD004"]


@pytest.mark.daily(one_of="heavy")
def test_two_kernels_that_wait_for_each_other() -> None:
    first = kernel("send", *spin("%rd4"), signal("%rd1"), width=1)
    second = kernel("receive", *spin("%rd1"), signal("%rd4"), width=1)
    found = message(first + second, a=ZERO)
    assert [f.kind for f in found.findings] == ["deadlock"]


def test_values_of_the_other_gpu_that_steer_control() -> None:
    """The reader may find the flag set or not; where it does, the data is there."""
    module = send() + kernel(
        "receive", "ld.acquire.sys.global.u32 %r5, [%rd4];", "setp.ne.u32 %p1, %r5, 1;", "@%p1 bra DONE;", READ,
        "DONE:", width=1,
    )  # fmt: skip
    assert message(module).verdict == "proved"
    early = module.replace("@%p1 bra DONE", "@!%p1 bra DONE")
    assert [f.code for f in message(early).findings] == ["RACE001"]


def test_variables_of_the_module_and_shared_memory_are_each_gpus_own() -> None:
    exchange = kernel(
        "k", "st.shared.u32 [tile], %r1;", "st.volatile.global.u32 [seen], 1;", "ld.volatile.global.u32 %r6, [seen];",
        signal("%rd1"), *spin("%rd4"), "ld.shared.u32 %r6, [tile];", width=1,
    )  # fmt: skip
    module = ".visible .global .align 4 .u32 seen;\n.shared .align 4 .b8 tile[4];" + exchange
    both = [launch("k", *names, gpu=g) | ONE for g, names in enumerate((("a", "b"), ("b", "a")))]
    found = checked(module, *both, a=ZERO, b=ZERO)
    assert found.verdict == "proved", found.findings
    weak = module.replace("st.volatile.global", "st.global").replace("ld.volatile.global", "ld.global")
    assert checked(weak, *both, a=ZERO, b=ZERO).verdict == "proved"


def test_memory_of_one_launch_is_not_that_of_another() -> None:
    module = kernel("k", WRITE, signal("%rd4"), *spin("%rd4"), width=1)
    own = [{**launch("k", None, "b", gpu=g), **ONE} for g in (0, 1)]
    assert checked(module, *own, b=ZERO).verdict == "proved"


def test_functions_are_copied_with_the_kernels_that_call_them() -> None:
    text = (
        HEAD
        + """
.visible .global .u32 seen;
.visible .global .u64 table[1] = {seen};
.func mark() { st.global.u32 [seen], 1; ret; }
.visible .entry k() { call mark, (); ret; }
"""
    )
    module = with_copy(parse_module(text, "k.ptx"), "k", 1)
    assert set(module.functions) == {"k", "mark", "k@gpu1", "mark@gpu1"}
    assert (owner_of("mark@gpu1"), written_name("mark@gpu1"), owner_of("mark")) == ("gpu1", "mark", "")
    call, store = module.functions["k@gpu1"].body[0], module.functions["mark@gpu1"].body[0]
    assert "mark@gpu1" in str(call.operands)
    assert "seen@gpu1" in str(store.operands)
    assert "seen@gpu1" in str(module.variables["table@gpu1"].initial)
    assert "@" not in str(module.functions["k"].body + module.functions["mark"].body)
    assert (call.span, call.text) == (module.functions["k"].body[0].span, module.functions["k"].body[0].text)


def test_launches_of_different_shapes() -> None:
    """CTAs of 96 threads beside one of 32; each has its own parameters, shared memory and registers."""
    module = ".shared .align 4 .b8 tile[384];" + kernel(
        "send", "mov.u32 %r6, tile;", "mad.lo.u32 %r6, %r1, 4, %r6;", "st.shared.u32 [%r6], %r3;", "bar.sync 0;",
        "ld.shared.u32 %r3, [tile+380];", WRITE, "bar.sync 0;", "setp.ne.u32 %p2, %r1, 0;", "@%p2 bra END;",
        "mov.u32 %r6, %nctaid.x;", "atom.release.sys.global.add.u32 %r6, [%rd4], %r6;", "END:", width=96,
    )  # fmt: skip
    module += kernel("receive", *spin("%rd4", 4), READ, width=32)
    given = [launch("send", "a", "b", gpu=1) | ONE | {"grid": 2}, launch("receive", "a", "b") | ONE]
    assert checked(module, *given, b=ZERO).verdict == "proved"
    found = checked(module.replace("atom.release", "atom.relaxed"), *given, b=ZERO)
    assert {f.code for f in found.findings} == {"RACE001"}
    assert {a.thread.partition(".")[0] for f in found.findings for a in f.accesses} == {"gpu0", "gpu1"}


# --- which of them there are at once --------------------------------------------------------------------------------


def pairs(grid: int, **more: object) -> Result:
    """Launches in which each CTA tells that of its number on the other GPU, and waits for that one."""
    module = kernel("k", signal("%rd5"), *spin("%rd3"), width=1)
    zeros = {"init": {"hex": "00000000" * grid}}
    given = [
        launch("k", *flags, gpu=g) | ONE | {"grid": grid, **more} for g, flags in enumerate((("b", "c"), ("c", "b")))
    ]
    return checked(module, *given, b=zeros, c=zeros)


@pytest.mark.daily(one_of="heavy")
def test_ctas_that_wait_for_their_peers() -> None:
    """Of each GPU one CTA may be there, and not that for which one of the other GPU waits."""
    found = pairs(2)
    assert [f.code for f in found.findings] == ["DEAD007"]
    assert "of GPU 1" in found.findings[0].message
    assert pairs(2, cooperative=True).verdict == "proved"
    assert pairs(1).verdict == "proved"


@pytest.mark.daily(one_of="heavy")
def test_large_grids_are_bounded() -> None:
    found = pairs(16, cooperative=True)
    assert (found.verdict, found.findings) == ("bounded", ())
    assert "6 of 32 clusters" in str(found.reason)
    assert found.covers.together == 6


def test_a_race_of_ctas_that_are_too_many_to_follow_is_not_taken_for_none() -> None:
    """The last CTAs of GPU 0 write what the first ones of GPU 1 read."""

    def answer(grid: int) -> Result:
        write = kernel("write", "st.global.u32 [%rd5], %r3;", width=1)
        read = kernel("read", f"ld.global.u32 %r6, [%rd3+{3 * grid}];", width=1)
        given = [launch("write", "c", "b"), launch("read", "b", gpu=1)]
        zeros = {"init": {"hex": "00000000" * 2 * grid}}
        return checked(write + read, *(one | ONE | {"grid": grid} for one in given), b=zeros, c=zeros)

    assert [f.code for f in answer(4).findings] == ["RACE001"]
    assert (answer(16).verdict, answer(16).covers.together) == ("bounded", 6)


def test_ctas_that_wait_for_nobody_end() -> None:
    """GPU 0 waits for both CTAs of GPU 1, of which one may begin when the other one has ended."""
    count = kernel("k", WRITE, "red.release.sys.global.add.u32 [%rd4], 1;", width=1)
    given = [launch("k", "a", "b", gpu=1) | ONE | {"grid": 2}, launch("receive", "a", "b") | ONE]
    found = checked(count + kernel("receive", *spin("%rd4", 2), READ, width=1), *given, b=ZERO)
    assert (found.verdict, found.findings) == ("proved", ())


@pytest.mark.daily(one_of="heavy")
def test_ctas_of_which_one_waits() -> None:
    """CTA 0 of GPU 1 waits for GPU 0, that waits for CTA 1, which need not be there before CTA 0 has ended."""
    which = ("setp.eq.u32 %p2, %r2, 1;", "@%p2 bra TELL;", *spin("%rd1"), "bra END;", "TELL:", signal("%rd4"), "END:")
    module = kernel("k", *which, width=1) + kernel("receive", *spin("%rd4"), signal("%rd1"), width=1)
    given = [launch("k", "a", "b", gpu=1) | ONE | {"grid": 2}, launch("receive", "a", "b") | ONE]
    assert [f.code for f in checked(module, *given, a=ZERO, b=ZERO).findings] == ["DEAD007"]
    first = {**given[0], "cooperative": True}
    assert checked(module, first, given[1], a=ZERO, b=ZERO).verdict == "proved"


# --- who may access a buffer ------------------------------------------------------------------------------------------


def test_a_buffer_that_the_other_gpu_may_not_access() -> None:
    """The receiver reads ``a``, which lies on the sender's GPU."""
    module = send() + receive()
    for given in ({}, {"peers": [1]}, {"peers": [2, 1]}, {"gpu": 1, "peers": [0]}):
        assert message(module, a={"gpu": 0, **given}).verdict == "proved"
    for hidden in ({"peers": []}, {"peers": [2]}):
        found = message(module, a={"gpu": 0, **hidden})
        (finding,) = found.findings
        assert finding.code == "UB108"
        assert "a is not visible to GPU 1" in finding.message
        assert "peers" in finding.missing
        assert {a.instruction for a in finding.accesses} == {READ.rstrip(";")}


def test_a_launch_by_itself_on_a_gpu_that_may_not_access_a_buffer() -> None:
    module = kernel("use", READ)
    found = checked(module, launch("use", "a", gpu=1) | ONE, a={"peers": []})
    assert [f.code for f in found.findings] == ["UB108"]
    assert checked(module, launch("use", "a", gpu=1) | ONE, a={"gpu": 1, "peers": []}).verdict == "proved"
    assert checked(kernel("use", "mov.u32 %r4, %r1;"), launch("use", "a", gpu=1) | ONE, a={"peers": []}).verdict == (
        "proved"
    ), "a pointer alone is no access"


# --- what is not followed together ---------------------------------------------------------------------------------


def test_a_launch_behind_another_one_that_shares_memory() -> None:
    module = kernel("make", WRITE) + kernel("use", READ)
    first, second = launch("make", "a") | ONE, launch("use", "a", gpu=1) | ONE
    found = checked(module, first, first, second)
    assert (found.verdict, found.findings) == ("bounded", ())
    assert "launch 1 (make) on the same GPU begins before launch 2 (make)" in str(found.reason)
    assert "launch 3 (use) reads bytes of a that launch 1 (make) writes" in str(found.reason)
    after = checked(module, first, second, launch("make", "c") | ONE)
    assert [f.code for f in after.findings] == ["RACE001"], "one of another buffer does not matter"


def test_a_third_gpu_that_keeps_off() -> None:
    module = send() + receive()
    first, second = launch("send", "a", "b") | ONE, launch("receive", "a", "b", gpu=1) | ONE
    apart = launch("send", "c", gpu=2) | ONE
    found = checked(module, first, second, apart, b=ZERO)
    assert (found.verdict, found.covers.together) == ("proved", 2)
    assert [one.verdict for one in found.launches] == ["proved"] * 3


def test_three_gpus() -> None:
    pass_on = kernel("pass", *spin("%rd4", 1), signal("%rd4", 2), width=1)
    last = kernel("last", *spin("%rd4", 2), READ, width=1)
    given = [launch(name, "a", "b", gpu=g) | ONE for g, name in enumerate(("send", "pass", "last"))]
    assert checked(send() + pass_on + last, *given, b=ZERO).verdict == "proved"
    narrow = pass_on.replace("ld.acquire.sys", "ld.relaxed.sys")
    found = checked(send() + narrow + last, *given, b=ZERO)
    assert [{a.thread for a in f.accesses} for f in found.findings] == [{"gpu0.warp0[0]", "gpu2.warp0[0]"}]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"cluster": 2, "grid": 2}, "their clusters are of different sizes"),
        ({"assume": ["converged"]}, "they make different assumptions"),
        ({"params": {"x": {"buffer": "a"}}}, "launch 1 (make) has a pointer that is not given"),
        ({"block": 1024, "grid": 1, "cluster": 1}, "one CTA of each has more than 2048 threads in all"),
    ],
)
def test_what_cannot_be_followed_together(more: dict[str, object], said: str) -> None:
    wide = 1024 if "block" in more else 1
    module = kernel("make", WRITE, width=wide) + kernel("use", READ, width=wide)
    given = [launch("make", "a") | ONE | more, *(launch("use", "a", gpu=g) | ONE for g in (1, 2))]
    found = checked(module, *given)
    assert (found.verdict, found.findings) == ("bounded", ())
    assert said in str(found.reason)


def test_the_launches_of_a_file_are_those_of_several_gpus() -> None:
    module = parse_module(HEAD + send() + receive(), "k.ptx")
    given = {"launches": [launch("send", "a", gpu=3) | ONE], "buffers": {"a": {"bytes": 4}}}
    (read,) = build_launches(module, from_object(given)).launches
    assert (read.gpu, read.total_count, read.executed_count, read.is_sample) == (3, 1, 1, False)


# --- the time ---------------------------------------------------------------------------------------------------------


def test_launches_that_take_too_long_together_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def follow(module: Module, joined: Launch, model: Model, question: Question, *given: Any, **more: Any) -> object:
        limit = given[1]
        while not limit.is_over():
            pass
        return follow_clusters(module, joined, model, question, *given, **more)

    monkeypatch.setattr(concurrent_launches, "GROUP_SECONDS", 0.01)
    monkeypatch.setattr(concurrent_launches, "follow_clusters", follow)
    module = kernel("make", WRITE, width=1) + kernel("use", READ, width=1)
    found = checked(module, launch("make", "a") | ONE, launch("use", "a", gpu=1) | ONE)
    assert (found.verdict, found.cut) == ("bounded", True)
    assert "following clusters together takes more than 0.01 s" in str(found.reason)
    assert "no answer" not in str(found.reason)


def test_accesses_that_take_too_long_to_follow_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def follow(*_: object) -> object:
        raise TimeOut

    monkeypatch.setattr(launch_study, "follow_launch", follow)
    module = parse_module(HEAD + send() + receive(), "k.ptx")
    launches = [launch(name, "a", "b", gpu=g) | ONE for g, name in enumerate(("send", "receive"))]
    given = {"launches": launches, "buffers": {name: {"bytes": 4} for name in "ab"}}
    study = launch_study.LaunchStudy(module, build_launches(module, from_object(given)).launches, Limit())
    assert study.footprint(0) is None
    (why,) = study.footprints.values()
    assert why == share_reason("following its accesses", 10.0)


@pytest.mark.daily(days=3, least=0)
def test_a_wait_for_a_cta_that_need_not_be_there_is_said_of_the_thread_that_polls() -> None:
    """Lane 1 of a CTA waits for its peer, and lane 0 for lane 1."""
    both = ("setp.eq.u32 %p2, %r1, 0;", "@%p2 bra MEET;", signal("%rd5"), *spin("%rd3"), "MEET:", "bar.sync 0;")
    given = [launch("k", *flags, gpu=g) | ONE | {"grid": 2} for g, flags in enumerate((("b", "c"), ("c", "b")))]
    zeros = {"init": {"hex": "00000000" * 4}}
    (found,) = checked(kernel("k", *both, width=2), *given, b=zeros, c=zeros).findings
    assert found.code == "DEAD007"
    assert "warp0[1] waits for " in found.message
    assert "ld.acquire" in found.accesses[0].instruction
