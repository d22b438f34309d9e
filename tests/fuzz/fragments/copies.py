"""Fragments: cp.async with groups, bulk copies with an mbarrier or a group, and subsequent accesses."""

from __future__ import annotations

from tests.fuzz.body import Body
from tests.fuzz.fragments.mbarriers import published, waiting
from tests.fuzz.strong_copies import sometimes_strong


def cp_async(b: Body) -> None:
    """cp.async with a group, and who reads or reuses its bytes."""
    size = b.random.choice((4, 4, 8))
    b.say(f"cp.async.ca.shared.global [s[0]], [src], {size};")
    b.accesses += size // 2
    if b.chance(0.25):
        b.say("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];")
        if b.chance(0.6):
            waiting(b)
    else:
        b.say("cp.async.commit_group;")
        if b.chance(0.3):
            b.say("cp.async.ca.shared.global [s[1]], [src + 4], 4;", "cp.async.commit_group;")
            b.accesses += 2
        b.say(b.random.choice(("cp.async.wait_group 0;", "cp.async.wait_all;", "cp.async.wait_group 1;")))
    tail(b)


def tail(b: Body) -> None:
    """What follows a copy: a read, a write, a barrier, a fence."""
    for _ in range(b.random.randint(1, 2)):
        form = b.random.choice(("read", "read", "write", "source", "barrier", "fence"))
        if form == "read":
            b.say(f"ld.shared.u32 {b.result()}, [s[{b.random.randint(0, 1)}]];")
        elif form == "write":
            b.say(f"st.shared.u32 [s[0]], {b.value()};")
        elif form == "source":
            b.say(f"st.global.u32 [src], {b.value()};")
        elif form == "barrier":
            b.say("bar.sync 0;")
        else:
            b.say(b.random.choice(("fence.proxy.async.shared::cta;", "fence.proxy.async;", "fence.acq_rel.cta;")))
        b.accesses += form in ("read", "write", "source")


def bulk_load(b: Body) -> None:
    """A bulk copy into shared memory that signals an mbarrier."""
    if len(b.copies) > 1 and b.chance(0.9):
        published(b)
        return
    b.copies.append("load")
    if b.chance(0.4):
        b.say(f"st.shared.u32 [s[0]], {b.value()};", "fence.proxy.async.shared::cta;")
    announced = b.random.choices((16, 32), (9, 1))[0]
    b.say(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {announced};")
    copy = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [src], 16, [bar];"
    b.say(sometimes_strong(b.random, copy))
    b.accesses += 5
    if b.chance(0.8):
        waiting(b)
    tail(b)


def bulk_store(b: Body) -> None:
    """A bulk copy or reduction out of shared memory, with a group."""
    if b.copies and b.chance(0.9):  # several large copies have too many executions
        tail(b)
        return
    b.copies.append("store")
    b.say(f"st.shared.u32 [s[0]], {b.value()};", "fence.proxy.async.shared::cta;")
    reducing = b.chance(0.3)
    name = "cp.reduce.async.bulk" if reducing else "cp.async.bulk"
    copy = f"{name}.global.shared::cta.bulk_group{'.add.u32' if reducing else ''} [out], [s], 16;"
    b.say(sometimes_strong(b.random, copy))
    b.say("cp.async.bulk.commit_group;")
    b.say(
        b.random.choice(
            (
                *("cp.async.bulk.wait_group 0;",) * 3,
                "cp.async.bulk.wait_group.read 0;",
                "cp.async.bulk.wait_group.read 0;",
                "cp.async.bulk.wait_group.sync_restrict::proxy::async 0;",
            )
        )
    )
    b.accesses += 5
    if b.chance(0.5):
        b.say(f"ld.global.u32 {b.result()}, [out[0]];")
    elif b.chance(0.5):
        b.say(f"st.shared.u32 [s[0]], {b.value()};")
    else:
        b.say(f"st.release.gpu.global.u32 [x], {b.value()};")
