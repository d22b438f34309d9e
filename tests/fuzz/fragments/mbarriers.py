"""Fragments: arrivals at an mbarrier, waits for its phases, and the data that they publish."""

from __future__ import annotations

from tests.fuzz.body import Body
from tests.fuzz.fragments.plain import load, shared, store


def arriving(b: Body) -> None:
    """An arrival at the mbarrier."""
    sem = b.random.choice(("", "", ".release.cta", ".relaxed.cta", ".release.cluster"))
    form = b.random.choice(("arrive", "arrive", "arrive", "expect", "drop", "tx"))
    if form == "expect":
        b.say(f"mbarrier.arrive.expect_tx{sem}.shared::cta.b64 _, [bar], 16;")
    elif form == "tx":
        kind = b.random.choice(("expect_tx", "complete_tx"))
        b.say(f"mbarrier.{kind}.relaxed.cta.shared::cta.b64 [bar], 16;")
    elif form == "drop":
        b.say(f"mbarrier.arrive_drop{sem}.shared::cta.b64 _, [bar];")
    else:
        b.say(f"mbarrier.arrive{sem}.shared::cta.b64 _, [bar];")


def waiting(b: Body) -> None:
    """A wait on the mbarrier."""
    sem = b.random.choice(("", "", "", ".acquire.cta", ".relaxed.cta", ".acquire.cluster"))
    parity = b.random.choices((0, 1), (6, 1))[0]
    if b.chance(0.85):
        b.lines.append(f"await mbarrier.try_wait.parity{sem}.shared::cta.b64 [bar], {parity};")
    else:
        p = b.predicate()
        b.lines.append(f"mbarrier.test_wait.parity{sem}.shared::cta.b64 {p}, [bar], {parity};")
        r = b.result()
        b.lines.append(f"selp.u32 {r}, 1, 0, {p};")


def published(b: Body) -> None:
    """A write before an arrival, or a wait before a read."""
    if b.chance(0.5):
        b.random.choice((store, shared))(b)
        arriving(b)
    else:
        waiting(b)
        b.random.choice((load, shared))(b)


def rounds(b: Body) -> None:
    """Several phases of the mbarrier, with a repeated parity."""
    if b.chance(0.5):
        count = b.random.choices((2, 3), (3, 1))[0]
        b.lines.append(f"for k in 0..{count} {{")
        b.random.choice((arriving, lambda b: b.say("mbarrier.arrive.shared::cta.b64 _, [bar];")))(b)
        if b.chance(0.85):
            b.lines.append("await mbarrier.try_wait.parity.shared::cta.b64 [bar], k % 2;")
        if b.chance(0.3):
            b.say(f"st.shared.u32 [s[0]], {b.value()};")
        b.lines.append("}")
    elif b.chance(0.5):
        token, p = f"%rd{b.registers}", b.predicate()
        b.registers += 1
        b.lines.append(f"mbarrier.arrive.shared::cta.b64 {token}, [bar];")
        if b.chance(0.5):
            b.lines.append(f"await mbarrier.try_wait.shared::cta.b64 [bar], {token};")
        else:
            b.lines.append(f"mbarrier.test_wait.shared::cta.b64 {p}, [bar], {token};")
            b.lines.append(f"selp.u32 {b.result()}, 1, 0, {p};")
    else:
        for parity in range(b.random.randint(1, 2)):
            b.say(f"await mbarrier.try_wait.parity.shared::cta.b64 [bar], {parity};")
        if b.chance(0.15):
            b.say("mbarrier.inval.shared::cta.b64 [bar];")
            if b.chance(0.5):
                b.say("mbarrier.init.shared::cta.b64 [bar], 1;")
        shared(b)
    b.accesses += 1
