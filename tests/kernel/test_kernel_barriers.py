"""Barriers with a count, at which a warp may arrive more often than another one (Q22)."""

from __future__ import annotations

from mcheck.cat import load_model
from mcheck.policy.ask import ask
from mcheck.policy.question import About, Question
from mcheck.syntax import parse

TWICE = """PTX twice
{ }
C@cta 0, warp 0, lane 0..2 { bar.arrive 1, 64; bar.arrive 1, 64; }
A@cta 0, warp 1, lane 0 { bar.sync 1, 64; }
B@cta 0, warp 2, lane 0 { bar.sync 1, 64; }
"""


def test_lanes_that_part_at_a_barrier_with_a_count_are_no_deadlock() -> None:
    """Four arrivals are two rounds, whoever comes first; whose arrival is for which round is not followed."""
    given = ask(parse(TWICE, "twice.litmus"), load_model("ptx-9.0"), Question(about=About.FINDINGS), "protocol")
    assert given.findings == ()
