"""Operations whose facets say that they block: the protocol engine finds a thread that waits there forever."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from mcheck.ir import ops
from mcheck.ir.ops import Op

LATE = "await ld.relaxed.gpu.global.u32 r0, [x] == 1;"
"""Waits forever: nobody writes."""

SAMPLES: dict[type[Op], tuple[str, str]] = {
    ops.Await: ("warp 1", "await ld.relaxed.gpu.global.u32 r0, [x] == 2;"),
    ops.Barrier: ("warp 1", "bar.sync 0, 64;"),
    ops.ClusterBarrier: ("warp 1", "barrier.cluster.arrive; barrier.cluster.wait;"),
    ops.WarpSync: ("warp 0", "bar.warp.sync 3;"),
    ops.Collective: ("warp 0", "elect.sync _|%p1, 3;"),
    ops.WaitGroup: ("warp 1", "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"),
}
"""Where the other thread is, and what both execute, this one late."""


def test_there_is_a_sample_of_every_class_that_blocks() -> None:
    kinds = [k for k in vars(ops).values() if isinstance(k, type) and issubclass(k, Op) and "facets" in vars(k)]
    assert set(SAMPLES) == {kind for kind in kinds if kind.facets.blocks}


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_a_thread_waits_there_forever(kind: type[Op]) -> None:
    place, body = SAMPLES[kind]
    program = parse(
        f"""PTX blocked
{{ .global .u32 x = 0; }}
P0@cta 0, warp 0, lane 0 {{ {body} }}
P1@cta 0, {place}, lane 1 {{ {LATE} {body} }}
""",
        "blocked.litmus",
    )
    last = program.threads[0].code[-1]
    assert type(last) is kind
    (found,) = check(program, load_model("ptx-9.0"), timeout=30).findings
    assert found.code.startswith("DEAD")
    assert (last.span, "P0") in {(access.span, access.thread) for access in found.accesses}
