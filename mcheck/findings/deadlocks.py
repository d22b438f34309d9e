"""Deadlocks: threads that run or wait for ever although the scheduler is fair."""

from __future__ import annotations

from mcheck.findings.entry import Entry

_FAIR = "\nThe scheduler is taken to be fair: every thread that can run does, and every write is seen at last."

ENTRIES = (
    Entry(
        code="DEAD001",
        name="endless-spin",
        kind="deadlock",
        message="the loop at {instruction} never ends: no other thread can change what it reads",
        explanation="""\
A loop whose iterations only read repeats itself exactly. Once no other thread will write what it reads any
more, it repeats for ever."""
        + _FAIR,
        section="PTX ISA 9.0 section 8.10; fairness is an assumption",
        remedy="Write the awaited value on every path, before the writer itself waits for the spinning thread.",
        bad="""\
PTX spin-for-nobody
{ .global .u32 flag; }
P@cta 0 {
AGAIN:
  ld.relaxed.gpu.global.u32 r0, [flag];
  setp.ne.u32 %p1, r0, 1;
  @%p1 bra AGAIN;
}
expect deadlock
""",
        good="""\
PTX spin-for-the-writer
{ .global .u32 flag; }
P@cta 0 {
AGAIN:
  ld.relaxed.gpu.global.u32 r0, [flag];
  setp.ne.u32 %p1, r0, 1;
  @%p1 bra AGAIN;
}
Q@cta 1 { st.relaxed.gpu.global.u32 [flag], 1; }
expect clean
""",
    ),
    Entry(
        code="DEAD002",
        name="barrier-never-complete",
        kind="deadlock",
        message="{instruction} waits for ever: barrier {number} has {arrived} of {count} threads",
        explanation="""\
A barrier with a count waits until that many threads have arrived, one without for every thread of the CTA that
has not exited. Here the missing ones have ended, wait elsewhere or never come here. Each warp counts 32."""
        + _FAIR,
        section="PTX ISA 9.0 section 9.7.13.1",
        remedy="Let every expected warp reach the barrier on all paths, or lower the count.",
        bad="""\
PTX barrier-alone
{ }
P@cta 0 { barrier.sync 1, 64; }
expect deadlock
""",
        good="""\
PTX barrier-together
{ }
P@cta 0 { barrier.sync 1, 64; }
Q@cta 0 { barrier.sync 1, 64; }
expect clean
""",
    ),
    Entry(
        code="DEAD003",
        name="mbarrier-wait-never-satisfied",
        kind="deadlock",
        message="{instruction} waits for ever: phase {phase} of {object} lacks {pending} arrivals and {tx} bytes",
        explanation="""\
A phase completes when all arrivals have come and all announced bytes have been delivered. Here some never will:
an arrival is missing, more bytes are announced than copied, or the wait asks for the wrong parity, so that it
waits for the phase after the one it means."""
        + _FAIR,
        section="PTX ISA 9.0 sections 9.7.13.15.6 and 9.7.13.15.16",
        remedy=(
            "Match the init count with the arrivals and the expect-tx with the bytes; start producers with parity 1."
        ),
        bad="""\
PTX one-arrival-of-two
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 2;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect deadlock
""",
        good="""\
PTX two-arrivals-of-two
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 2;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  mbarrier.arrive.shared::cta.b64 _, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="DEAD004",
        name="awaited-value-never-comes",
        kind="deadlock",
        message="{instruction} waits for ever: {object} keeps a value that does not satisfy it",
        explanation="""\
The await blocks until the loaded value compares as asked. In this execution the location ends with another
value, and nobody is left who would change it."""
        + _FAIR,
        section="PTX ISA 9.0 section 8.10; fairness is an assumption",
        remedy="Write the awaited value on every path, and see that no later write takes it away again.",
        bad="""\
PTX await-a-wrong-value
{ .global .u32 flag; }
P@cta 0 { await ld.acquire.gpu.global.u32 r0, [flag] == 2; }
Q@cta 1 { st.release.gpu.global.u32 [flag], 1; }
expect deadlock
""",
        good="""\
PTX await-the-value
{ .global .u32 flag; }
P@cta 0 { await ld.acquire.gpu.global.u32 r0, [flag] == 1; }
Q@cta 1 { st.release.gpu.global.u32 [flag], 1; }
expect clean
""",
    ),
    Entry(
        code="DEAD005",
        name="cluster-barrier-never-complete",
        kind="deadlock",
        message="{instruction} waits for ever: {missing} of the cluster has neither arrived nor exited",
        explanation="""\
The cluster barrier waits for every thread of the cluster that has not exited. Here one of them waits for
something else before it arrives, and that does not come."""
        + _FAIR,
        section="PTX ISA 9.0 section 9.7.13.3",
        remedy="Let every thread arrive before it waits for anything that comes after the barrier.",
        bad="""\
PTX cluster-barrier-circular-wait
{ .global .u32 flag; }
P@cluster 0, cta 0 {
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  st.release.gpu.global.u32 [flag], 1;
}
Q@cluster 0, cta 1 {
  await ld.acquire.gpu.global.u32 r0, [flag] == 1;
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}
expect deadlock
""",
        good="""\
PTX cluster-barrier-arrive-first
{ .global .u32 flag; }
P@cluster 0, cta 0 {
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  st.release.gpu.global.u32 [flag], 1;
}
Q@cluster 0, cta 1 {
  barrier.cluster.arrive.release;
  await ld.acquire.gpu.global.u32 r0, [flag] == 1;
  barrier.cluster.wait.acquire;
}
expect clean
""",
    ),
    Entry(
        code="DEAD006",
        name="lanes-never-meet",
        kind="deadlock",
        message="{instruction} waits for ever: {missing} never comes to it",
        explanation="""\
bar.warp.sync waits for every lane of its mask that has not exited, and an operation of a warpgroup for its four
warps. Lanes are scheduled independently: here one of them waits for something else first, and that does not
come."""
        + _FAIR,
        section="PTX ISA 9.0 section 9.7.13.2",
        remedy="Name in the mask the lanes that come here, and let each arrive before it waits for what follows.",
        bad="""\
PTX lane-waits-for-its-waiter
{ .shared .u32 flag; }
P@cta 0, warp 0, lane 0 {
  st.relaxed.cta.shared.u32 [flag], 0;
  bar.warp.sync 3;
  bar.warp.sync 3;
  st.relaxed.cta.shared.u32 [flag], 1;
}
Q@cta 0, warp 0, lane 1 {
  bar.warp.sync 3;
  await ld.relaxed.cta.shared.u32 r0, [flag] == 1;
  bar.warp.sync 3;
}
expect deadlock
""",
        good="""\
PTX lane-meets-before-it-waits
{ .shared .u32 flag; }
P@cta 0, warp 0, lane 0 {
  st.relaxed.cta.shared.u32 [flag], 0;
  bar.warp.sync 3;
  bar.warp.sync 3;
  st.relaxed.cta.shared.u32 [flag], 1;
}
Q@cta 0, warp 0, lane 1 {
  bar.warp.sync 3;
  bar.warp.sync 3;
  await ld.relaxed.cta.shared.u32 r0, [flag] == 1;
}
expect clean
""",
    ),
)
