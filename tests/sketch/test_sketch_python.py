"""Sketches written in Python: the same programs, with the lines of this file in their findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.litmus import parse
from mcheck.sketch import Pipeline, Sketch, assert_clean, assert_finds
from mcheck.sketch.role import Role


def ring(rounds: int = 5, *, fence: bool = True, count: int = 2) -> Sketch:
    s = Sketch("ring", doc="one producer, two consumer warps")
    source = s.array("src", 256 * rounds, space="global")
    pipe = Pipeline(s, "pipe", stages=2, size=256, consumers=count)

    @s.role("producer", warp=0, lane=0)
    def producer(t: Role) -> None:
        pipe.init(t)
        t.sync()
        for k in range(rounds):
            pipe.acquire(t, k)
            pipe.load(t, k, source + 256 * k)

    with s.role("consumer", warp=(1, 3)) as t:
        t.sync()
        for k in range(rounds):
            pipe.wait(t, k)
            t.ld(pipe.slot(k) + 4 * t.laneid)
            pipe.release(t, k, fence=fence)

    return s


def test_a_sound_ring_is_clean() -> None:
    found = assert_clean(ring())
    assert (found.verdict, found.executions) == ("proved", 1)


def test_findings_name_the_lines_of_the_caller() -> None:
    found = assert_finds(ring(fence=False), "RACE006")
    read, write = found.findings[0].accesses
    assert read.span is not None
    assert write.span is not None
    text = Path(__file__).read_text().splitlines()
    assert read.span.path == write.span.path == __file__
    assert "t.ld(" in text[read.span.line - 1]
    assert "pipe.load(" in text[write.span.line - 1]


def test_a_failed_assertion_shows_the_findings() -> None:
    with pytest.raises(AssertionError, match="RACE006"):
        assert_clean(ring(fence=False))
    with pytest.raises(AssertionError, match="no deadlock found"):
        assert_finds(ring(), "deadlock")


def test_a_missing_release_is_a_deadlock() -> None:
    assert_finds(ring(count=3), "deadlock")


def test_it_prints_itself_as_block_form() -> None:
    text = ring(2).text()
    assert text.startswith("PTX ring\n")
    again = parse(text, "ring.litmus")
    own = ring(2).program()
    assert [[op.text for op in t.code] for t in again.threads] == [[op.text for op in t.code] for t in own.threads]


def test_loops_and_branches_of_the_block_form() -> None:
    s = Sketch("loop")
    out, buf = s.array("out", 64, space="global"), s.array("buf", 64)
    with s.role("worker", warp=0, lane=0) as t, t.loop("i", 0, 4) as i:
        t.st(buf + 16 * i, 1)
        t.fence_proxy_async("shared::cta")
        t.bulk_store(out + 16 * i, buf + 16 * i, 16)
        t.commit_group()
        t.wait_group(0, read=True)
    assert_clean(s)


def test_errors_point_into_the_caller() -> None:
    s = Sketch("wrong")
    with s.role("worker") as t:
        t.ptx("ld.shared.u32 r0, [nowhere]")
    with pytest.raises(InputError) as caught:
        s.program()
    assert caught.value.span is not None
    assert caught.value.span.path == __file__
