"""What follows each operation of a phase is summed up as a look at every pair of operations does."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.operations import mbarrier_reordering
from mcheck.engines.protocol.operations.phase_deferral import _Followers, follows_in_time
from mcheck.engines.protocol.state.sync_objects import SyncOperation
from mcheck.events.event import Event
from mcheck.frontend.litmus import parse
from mcheck.ir import ops

AGENTS = 3
KINDS = ("expect", "arrive", "complete", "nocomplete")


class _Plain(Event):
    """An event of which only the operation is asked for."""

    def __init__(self, op: object) -> None:
        object.__setattr__(self, "op", op)


@st.composite
def phases(draw: st.DrawFn) -> list[SyncOperation]:
    """Operations with arbitrary steps and times, some of them signals, some not ordered by an axiom."""
    commit = object.__new__(ops.TensorCommit)
    out: list[SyncOperation] = []
    for position in range(draw(st.integers(0, 9))):
        event = _Plain(commit if draw(st.booleans()) else None)
        time = draw(st.lists(st.integers(0, 6), min_size=AGENTS, max_size=AGENTS))
        agent, step = draw(st.integers(0, AGENTS - 1)), draw(st.integers(1, 6))
        done = SyncOperation(agent, step, position, time, event, draw(st.sampled_from(KINDS)), 0)
        done.signal = draw(st.sampled_from([-1, -1, AGENTS]))
        done.effect = draw(st.tuples(st.integers(-2, 2), st.integers(-16, 16)))
        done.reorderable = tuple(draw(st.lists(st.sampled_from(out), max_size=3)) if out else ())
        out.append(done)
    return out


@settings(max_examples=300, deadline=None)
@given(phases(), st.booleans())
def test_sums_are_those_of_all_pairs(now: list[SyncOperation], by_axiom: bool) -> None:
    follows = mbarrier_reordering.follows_by_axiom(follows_in_time) if by_axiom else follows_in_time
    followers = _Followers(now, by_axiom=by_axiom)
    for d in now:
        later = [x for x in now if x is not d and follows(d, x)]
        effects = [x.effect for x in (d, *later)]
        assert followers.sum_with(d) == (sum(p for p, _ in effects), sum(t for _, t in effects))
        assert followers.is_observed(d) == any(x.kind != "expect" for x in later)


def test_the_sums_of_a_long_phase_take_no_look_at_every_pair() -> None:
    """128 threads with 40 operations each, none of which follows one of another thread: 26 million pairs."""
    event = _Plain(None)
    now = [
        SyncOperation(agent, step, 128 * step + agent, [0] * agent + [step] + [0] * (127 - agent), event, "expect", 0)
        for step in range(1, 41)
        for agent in range(128)
    ]
    for d in now:
        d.effect = (1, 0)
    began = time.process_time()
    followers = _Followers(now)
    assert [followers.sum_with(d) for d in now] == [(41 - d.step, 0) for d in now]
    assert time.process_time() - began < 2


def test_a_phase_of_many_copies_that_threads_track_one_by_one_is_covered() -> None:
    """64 threads let an mbarrier track 24 copies and one bulk copy each."""
    copies = "\n".join(
        f"cp.async.ca.shared.global [buf + {256 * k} + 4*%tid.x], [src + {256 * k} + 4*%tid.x], 4;\n"
        "cp.async.mbarrier.arrive.shared.b64 [full];"
        for k in range(24)
    )
    test = parse(
        f"""PTX many-arrivals
{{
  .global .align 16 .b8 src[{256 * 24}];
  .shared .align 16 .b8 buf[{256 * 24}];
  .shared .align 16 .b8 rows[1024];
  .shared .align 8 .b64 full;
}}
all@cta 0, warp 0..2 {{
  if (%tid.x == 0) {{ mbarrier.init.shared::cta.b64 [full], 64; }}
  bar.sync 0;
  {copies}
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [rows + 16*%tid.x], [src + 16*%tid.x], 16, [full];
  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 16;
  mbarrier.arrive.shared::cta.b64 _, [full];
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
  ld.shared.u32 r0, [buf + 252 - 4*%tid.x];
}}
""",
        "many-arrivals.litmus",
    )
    given_answer = check(test, load_model("ptx-9.0"))
    assert not given_answer.findings
    assert given_answer.covered
