"""Executions that are no interleaving: the engine does not follow them, and must not call such a program proved."""

from __future__ import annotations

import random

import pytest

from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
from mcheck.engines.protocol.analysis.shared_words import ANY_WORD, signalled_word
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from mcheck.ir import ops
from mcheck.ir.expr import Const

HEAD = (
    "{ .global .u32 x = 0, y = 0, z = 0, d = 0, f = 0; .global .align 16 .u32 g[4]; "
    ".shared .align 8 .b64 a, b; .shared .align 16 .b8 s[16]; }\n"
)
LOAD = "ld.relaxed.gpu.global.u32"
STORE = "st.relaxed.gpu.global.u32"
INIT = "mbarrier.init.shared::cta.b64 [a], 1; mbarrier.init.shared::cta.b64 [b], 1; bar.sync 0;"
POLL = "mbarrier.test_wait.parity.relaxed.cta.shared::cta.b64 %p1,"
WAIT = "await mbarrier.try_wait.parity.shared::cta.b64"
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
RELEASE_ACQUIRE = "fence.release.gpu; fence.acquire.gpu;"
COMMIT = "wgmma.commit_group.sync.aligned;"
MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
ARRIVE = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _,"


def racing(value: int) -> str:
    return f"if (r0 == 1) {{ st.global.u32 [d], {value}; }}"


BEYOND = {
    "addition-behind-a-relaxed-flag": (  # the second addition may come first, and end the wait alone
        f"st.global.u32 [d], 1; red.release.gpu.global.add.u32 [x], 1; {STORE} [y], 1;",
        f"await {LOAD} r0, [y] == 1; red.relaxed.gpu.global.add.u32 [x], 1;",
        "await ld.acquire.gpu.global.u32 r0, [x] >= 1; ld.global.u32 r1, [d];",
    ),
    "load-buffering": (
        f"{LOAD} r0, [x]; {STORE} [y], 1; {racing(1)}",
        f"{LOAD} r0, [y]; {STORE} [x], 1; {racing(2)}",
    ),
    "load-buffering-acquire": (
        f"ld.acquire.gpu.global.u32 r0, [x]; {STORE} [y], 1; {racing(1)}",
        f"{LOAD} r0, [y]; {STORE} [x], 1; {racing(2)}",
    ),
    "load-buffering-volatile": (
        f"ld.volatile.global.u32 r0, [x]; st.volatile.global.u32 [y], 1; {racing(1)}",
        f"ld.volatile.global.u32 r0, [y]; st.volatile.global.u32 [x], 1; {racing(2)}",
    ),
    "load-buffering-atomics": (
        f"atom.relaxed.gpu.global.exch.b32 r0, [x], 2; red.relaxed.gpu.global.add.u32 [y], 1; {racing(1)}",
        f"atom.relaxed.gpu.global.exch.b32 r0, [y], 2; red.relaxed.gpu.global.add.u32 [x], 1; {racing(2)}",
    ),
    "load-buffering-one-dependency": (
        f"{LOAD} r0, [x]; {STORE} [y], 1; {racing(1)}",
        f"await {LOAD} r0, [y] == 1; {STORE} [x], 1; st.global.u32 [d], 2;",
    ),
    "load-buffering-three-threads": (
        f"{LOAD} r0, [x]; {STORE} [y], 1; {racing(1)}",
        f"{LOAD} r0, [y]; {STORE} [z], r0;",
        f"{LOAD} r0, [z]; {STORE} [x], 1; {racing(2)}",
    ),
    "load-buffering-polls": (
        f"{INIT} {POLL} [a], 0; {ARRIVE} [b]; @%p1 st.global.u32 [d], 1;",
        f"bar.sync 0; {POLL} [b], 0; {ARRIVE} [a]; @%p1 st.global.u32 [d], 2;",
    ),
    "load-buffering-flag-and-poll": (
        f"{INIT} ld.relaxed.cta.global.u32 r0, [x]; {ARRIVE} [b]; {racing(1)}",
        f"bar.sync 0; {POLL} [b], 0; st.relaxed.cta.global.u32 [x], 1; @%p1 st.global.u32 [d], 2;",
    ),
    "load-buffering-deadlock": (
        (
            f"{INIT} {LOAD} r0, [x]; {STORE} [y], 1; "
            "if (r0 == 1) { await mbarrier.try_wait.parity.shared::cta.b64 [a], 0; }"
        ),
        f"bar.sync 0; {LOAD} r0, [y]; {STORE} [x], 1; if (r0 != 1) {{ mbarrier.arrive.shared::cta.b64 _, [a]; }}",
    ),
    "load-buffering-arrive-of-copies": (
        f"{INIT} {LOAD} r0, [x]; cp.async.mbarrier.arrive.noinc.shared::cta.b64 [a]; {racing(1)}",
        f"bar.sync 0; st.global.u32 [d], 2; {WAIT} [a], 0; {STORE} [x], 1;",
    ),
    "load-buffering-store-of-a-vector": (
        f"{LOAD} r0, [x]; st.relaxed.gpu.global.v2.u32 [g], {{1, 1}}; {racing(1)}",
        f"{LOAD} r0, [g+4]; {STORE} [x], 1; {racing(2)}",
    ),
    "load-buffering-load-of-a-vector": (
        f"{LOAD} r0, [x]; {STORE} [g+4], 1; {racing(1)}",
        f"ld.relaxed.gpu.global.v2.u32 {{r1, r0}}, [g]; {STORE} [x], 1; {racing(2)}",
    ),
    "load-buffering-asynchronous-store": (
        f"{LOAD} r0, [x]; st.async.release.gpu.global.u32 [y], 1; {racing(1)}",
        f"{LOAD} r0, [y]; {STORE} [x], 1; {racing(2)}",
    ),
    "load-buffering-relaxed-cluster-barrier": (
        f"{LOAD} r0, [x]; barrier.cluster.arrive.relaxed; {racing(1)} barrier.cluster.wait;",
        f"st.global.u32 [d], 2; barrier.cluster.arrive.relaxed; barrier.cluster.wait; {STORE} [x], 1;",
    ),
    "load-buffering-lanes": (
        f"{LOAD} r0, [x]; elect.sync _|%p1, 3; {racing(1)}",
        f"st.global.u32 [d], 2; elect.sync _|%p1, 3; {STORE} [x], 1;",
    ),
    "load-buffering-groups-of-a-warpgroup": (
        f"{LOAD} r0, [x]; {COMMIT} {racing(1)}",
        f"st.global.u32 [d], 2; {COMMIT} wgmma.wait_group.sync.aligned 0; {STORE} [x], 1;",
    ),
    "load-buffering-multicast": (
        f"{MEET} {LOAD} r0, [x]; {MULTICAST} [s], [g], 16, [a], 2; {racing(1)}",
        (
            f"mbarrier.init.shared::cta.b64 [a], 1; fence.mbarrier_init.release.cluster; {MEET} "
            "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [a], 16; "
            f"st.global.u32 [d], 2; {WAIT} [a], 0; {STORE} [x], 1;"
        ),
    ),
    "load-buffering-behind-a-barrier": (
        f"{STORE} [x], 0; bar.sync 0; {LOAD} r0, [x]; {STORE} [y], 1; {racing(1)}",
        f"bar.sync 0; {LOAD} r0, [y]; {STORE} [x], 1; {racing(2)}",
    ),
    "load-buffering-across-one-of-two-barriers": (
        f"{LOAD} r0, [x]; bar.sync 1, 64; {STORE} [y], 1; {racing(1)}",
        f"bar.sync 1, 64; {LOAD} r0, [y]; {STORE} [z], r0;",
        f"{LOAD} r0, [z]; {STORE} [x], 1; {racing(2)}",
    ),
    "load-buffering-releases-in-front-of-acquires": (  # what a fence acquires is not handed on by one in front of it
        f"{LOAD} r0, [x]; {RELEASE_ACQUIRE} {STORE} [y], 1; {STORE} [f], r0;",
        f"{LOAD} r0, [y]; {RELEASE_ACQUIRE} {STORE} [z], 1; {STORE} [g], r0;",
        (
            f"{LOAD} r0, [z]; {RELEASE_ACQUIRE} {STORE} [x], 1; {LOAD} r1, [f]; {LOAD} r2, [g]; "
            "if (r0 == 1) { if (r1 == 1) { if (r2 == 1) { st.global.u32 [d], 1; } } }"
        ),
        "st.global.u32 [d], 2;",
    ),
    "2+2W": (
        f"{STORE} [x], 1; {STORE} [y], 2; {LOAD} r0, [y]; {racing(1)}",
        f"{STORE} [y], 1; {STORE} [x], 2; {LOAD} r0, [x]; {racing(2)}",
    ),
    "S": (
        f"{STORE} [x], 2; {STORE} [y], 1; st.release.gpu.global.u32 [f], 1;",
        (
            f"{LOAD} r0, [y]; {STORE} [x], 1; await ld.acquire.gpu.global.u32 r2, [f] == 1; {LOAD} r1, [x]; "
            "if (r0 == 1) { if (r1 == 2) { st.global.u32 [d], 1; } }"
        ),
        "st.global.u32 [d], 3;",
    ),
}
"""Programs with an error in executions that are no interleaving, and in no other."""

WITHIN = {
    "message-passing": (
        f"st.global.u32 [d], 1; st.release.gpu.global.u32 [f], 1; {LOAD} r0, [g];",
        "await ld.acquire.gpu.global.u32 r0, [f] == 1; ld.global.u32 r1, [d];",
    ),
    "handshake": (
        "st.release.gpu.global.u32 [f], 1; await ld.acquire.gpu.global.u32 r0, [g] == 1; st.global.u32 [d], 1;",
        "await ld.acquire.gpu.global.u32 r0, [f] == 1; ld.global.u32 r1, [d]; st.release.gpu.global.u32 [g], 1;",
    ),
    "dependent-on-both-sides": (
        f"{LOAD} r0, [x]; if (r0 == 1) {{ {STORE} [y], 1; st.global.u32 [d], 1; }}",
        f"{LOAD} r0, [y]; if (r0 == 1) {{ {STORE} [x], 1; st.global.u32 [d], 2; }}",
    ),
    "store-buffering-fenced": (
        f"{STORE} [x], 1; fence.sc.gpu; {LOAD} r1, [y]; if (r1 == 0) {{ st.global.u32 [d], 1; }}",
        f"{STORE} [y], 1; fence.sc.gpu; {LOAD} r1, [x]; if (r1 == 0) {{ st.global.u32 [d], 2; }}",
    ),
    "load-buffering-across-a-barrier": (
        f"{LOAD} r0, [x]; bar.sync 0; {STORE} [y], 1; {racing(1)}",
        f"{LOAD} r0, [y]; bar.sync 0; {STORE} [x], 1; {racing(2)}",
    ),
    "S-across-a-barrier": (
        f"{STORE} [x], 2; bar.sync 0; {STORE} [y], 1; st.release.gpu.global.u32 [f], 1;",
        (
            f"bar.sync 0; {LOAD} r0, [y]; {STORE} [x], 1; await ld.acquire.gpu.global.u32 r2, [f] == 1; "
            f"{LOAD} r1, [x]; if (r0 == 1) {{ if (r1 == 2) {{ st.global.u32 [d], 1; }} }}"
        ),
        "bar.sync 0; st.global.u32 [d], 3;",
    ),
    "one-word": (
        f"{STORE} [x], 1;",
        f"{STORE} [x], 2;",
        f"{LOAD} r0, [x]; {LOAD} r1, [x]; if (r0 == 1) {{ if (r1 == 2) {{ st.global.u32 [d], 1; }} }}",
        f"{LOAD} r0, [x]; {LOAD} r1, [x]; if (r0 == 2) {{ if (r1 == 1) {{ st.global.u32 [d], 2; }} }}",
    ),
}
"""Programs of which every execution that counts is an interleaving."""


def text(name: str, bodies: tuple[str, ...]) -> str:
    used = "".join(bodies)
    place = "cta 0" if "bar.sync" in used or COMMIT in used else "cta {k}"
    if "barrier.cluster" in used:
        place = f"cluster 0, {place}"
    elif "elect.sync" in used:
        place = "cta 0, warp 0, lane {k}"
    roles = [f"P{k}@{place.format(k=k)} {{ {body} }}" for k, body in enumerate(bodies)]
    return f"PTX {name}\n{HEAD}" + "\n".join(roles) + "\n"


@pytest.mark.daily
@pytest.mark.parametrize("name", BEYOND)
def test_what_no_interleaving_shows_is_not_proved(name: str) -> None:
    model = load_model("ptx-9.0")
    program = parse(text(name, BEYOND[name]), f"{name}.litmus")
    assert any(f.severity == "error" for f in answer(program, model, findings=True, timeout=60).findings)
    found = check(program, model, timeout=30)
    assert found.verdict in ("bounded", "finding"), found
    assert found.verdict == "finding" or (found.reason is not None and "interleaving" in found.reason)


@pytest.mark.daily
@pytest.mark.parametrize("name", WITHIN)
def test_what_interleavings_show_is_proved(name: str) -> None:
    found = check(parse(text(name, WITHIN[name]), f"{name}.litmus"), load_model("ptx-9.0"), timeout=30)
    assert (found.verdict, found.findings) == ("proved", ())


def test_a_commit_of_tensor_memory_signals_like_a_copy() -> None:
    """Modules alone have ``tcgen05.commit``."""
    assert signalled_word(ops.TensorCommit(address=Const(8))) == 8
    assert signalled_word(ops.TensorCommit(address=Const(8), cta_mask=Const(2))) == ANY_WORD
    assert signalled_word(ops.MbarrierInit(address=Const(8), count=Const(1))) is None


def random_behind_barriers(rng: random.Random) -> tuple[str, ...]:
    """Two or three threads of a CTA that access three words around as many barriers, and race if they read a value."""
    barriers, bodies = rng.choice((1, 1, 2)), []
    for k in range(rng.choice((2, 2, 3))):
        operations, read = [], []
        for j in range(rng.choice((2, 3))):
            word, kind = rng.choice("xyz"), rng.random()
            if kind < 0.55:
                read.append(j)
            if kind < 0.4:
                operations.append(f"ld.{rng.choice(('relaxed', 'relaxed', 'acquire'))}.gpu.global.u32 r{j}, [{word}];")
            elif kind < 0.55:
                operations.append(f"atom.relaxed.gpu.global.exch.b32 r{j}, [{word}], 1;")
            else:
                operations.append(f"st.{rng.choice(('relaxed', 'relaxed', 'release'))}.gpu.global.u32 [{word}], 1;")
        for _ in range(barriers if rng.random() > 0.1 else barriers - 1):
            operations.insert(rng.randrange(len(operations) + 1), "bar.sync 0;")
        end = f"if (r{rng.choice(read)} == 1) {{ st.global.u32 [d], {k}; }}" if read else ""
        bodies.append(" ".join((*operations, end)))
    return tuple(bodies)


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(8))
def test_what_is_proved_of_random_programs_with_barriers_has_no_error(seed: int) -> None:
    model, rng = load_model("ptx-9.0"), random.Random(seed)
    proved = 0
    for number in range(25):
        bodies = random_behind_barriers(rng)
        roles = "\n".join(f"P{k}@cta 0 {{ {body} }}" for k, body in enumerate(bodies))
        source = f"PTX random\n{HEAD}{roles}\n"
        if check(parse(source, "random.litmus"), model, timeout=30).verdict != "proved":
            continue
        proved += 1
        found = answer(parse(source, "random.litmus"), model, findings=True, timeout=60)
        assert not any(f.severity == "error" for f in found.findings), (number, source)
    assert proved > 5
