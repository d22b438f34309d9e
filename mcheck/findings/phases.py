"""Undefined or erroneous use of the phases of an mbarrier: waits, states, completions."""

from __future__ import annotations

from mcheck.findings.entry import Entry

ENTRIES = (
    Entry(
        code="UB210",
        name="stale-state-operand",
        kind="undefined",
        message=(
            "{instruction} has a state operand that no arrive on {object} in its current or preceding phase returned"
        ),
        explanation="""\
The state operand of a wait must be what an arrive on the same object returned, in the current phase or in the
one just completed. An older one, one of another object or any other number is undefined.""",
        section="PTX ISA 9.0 section 9.7.13.15.16",
        remedy="Wait with the state of the latest arrive, or use the parity form.",
        bad="""\
PTX old-state
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 %rd1, [bar];
  await mbarrier.try_wait.shared::cta.b64 [bar], %rd1;
  mbarrier.arrive.shared::cta.b64 %rd2, [bar];
  await mbarrier.try_wait.shared::cta.b64 [bar], %rd2;
  await mbarrier.try_wait.shared::cta.b64 [bar], %rd1;
}
expect undefined
""",
        good="""\
PTX fresh-state
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 %rd1, [bar];
  await mbarrier.try_wait.shared::cta.b64 [bar], %rd1;
  mbarrier.arrive.shared::cta.b64 %rd2, [bar];
  await mbarrier.try_wait.shared::cta.b64 [bar], %rd2;
}
expect clean
""",
    ),
    Entry(
        code="UB211",
        name="pending-count-of-another-state",
        kind="undefined",
        message="{instruction} reads a state that no .noComplete arrive returned",
        explanation="""\
mbarrier.pending_count takes the pending count out of the state that a .noComplete arrive or arrive_drop
returned. The states of other arrives need not hold it.""",
        section="PTX ISA 9.0 section 9.7.13.15.17",
        remedy="Give it the state of an mbarrier.arrive.noComplete.",
        bad="""\
PTX pending-count-of-arrive
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 2;
  mbarrier.arrive.shared::cta.b64 %rd1, [bar];
  mbarrier.pending_count.b64 r0, %rd1;
}
expect undefined
""",
        good="""\
PTX pending-count-of-nocomplete
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 2;
  mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [bar], 1;
  mbarrier.pending_count.b64 r0, %rd1;
}
expect clean
""",
    ),
    Entry(
        code="UB212",
        name="phase-that-nobody-waited-for",
        kind="undefined",
        goes_on=True,
        level="review",
        message="{instruction} arrives in phase {phase} of {object}, but no wait saw the phase before it complete",
        explanation="""\
The ISA asks that at least one test_wait or try_wait return true for a phase before anybody arrives in the next
one. It names no consequence, and hardware needs none, so this is for review.""",
        section="PTX ISA 9.0 section 9.7.13.15.4",
        remedy="Wait for the phase before the next arrival, in at least one thread, and order the two. If more arrive "
        "in a round than the mbarrier's init counts, correct the count.",
        bad="""\
PTX arrive-arrive
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
expect undefined
""",
        good="""\
PTX arrive-wait-arrive
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
expect clean
""",
    ),
    Entry(
        code="UB214",
        name="state-of-a-remote-arrive",
        kind="undefined",
        message="{instruction} wants the state of {object}, which is in another CTA",
        explanation="""\
An arrive on an mbarrier of another CTA returns nothing: its destination must be the sink _. A state would be of
no use either, since only threads of the owning CTA may wait on the object.""",
        section="PTX ISA 9.0 section 9.7.13.15.8",
        remedy="Write _ as the destination.",
        bad="""\
PTX remote-arrive-with-state
{ .shared .align 8 .b64 bar; }
P@cluster 0, cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  await mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 [bar], 0;
}
Q@cluster 0, cta 1 {
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  mov.u64 %rd1, bar@0;
  mbarrier.arrive.release.cluster.b64 %rd2, [%rd1];
}
expect undefined
""",
        good="""\
PTX remote-arrive-into-the-sink
{ .shared .align 8 .b64 bar; }
P@cluster 0, cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  await mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 [bar], 0;
}
Q@cluster 0, cta 1 {
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [bar@0];
}
expect clean
""",
    ),
    Entry(
        code="UB215",
        name="mbarrier-gone-before-its-signals",
        kind="undefined",
        message="{object} is gone while {instruction} has still to signal it",
        explanation="""\
An asynchronous operation signals its mbarrier when it completes. If the object is invalidated before, or its
CTA has ended, the signal goes to memory that is no mbarrier any more. The texts forbid the reuse without naming
the case; mcheck reports it.""",
        section="PTX ISA 9.0 sections 9.7.13.15.3 and 9.7.9.25.2",
        remedy=(
            "Wait for the phase that the operation completes before the object is invalidated and before the CTA ends."
        ),
        bad="""\
PTX inval-before-the-signal
{
  .global .align 16 .b8 src[16];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
  mbarrier.inval.shared::cta.b64 [bar];
}
expect undefined
""",
        good="""\
PTX inval-after-the-wait
{
  .global .align 16 .b8 src[16];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  mbarrier.inval.shared::cta.b64 [bar];
}
expect clean
""",
    ),
    Entry(
        code="UB216",
        name="completion-in-an-unexpecting-phase",
        kind="undefined",
        goes_on=True,
        message="{instruction} delivers {bytes} bytes in phase {phase} of {object}, which does not expect them",
        explanation="""\
The bytes of a completion have to be announced by an expect-tx of the same phase. If they are not, or if fewer
were announced than come, the tx-count stays below zero and the phase cannot complete; if the phase had
completed before, the bytes are counted against the next one. The texts bound the counts only; mcheck reports
the mismatch.""",
        section="PTX ISA 9.0 sections 9.7.13.15.5 and 9.7.13.15.6",
        remedy=(
            "Announce the exact sum of the bytes of a phase, before or fused with an arrival that the "
            "phase still needs."
        ),
        bad="""\
PTX expect-too-little
{
  .global .align 16 .b8 src[32];
  .shared .align 16 .b8 buf[32];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 32, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect undefined
""",
        good="""\
PTX expect-the-sum
{
  .global .align 16 .b8 src[32];
  .shared .align 16 .b8 buf[32];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 32, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="UB217",
        name="expect-tx-after-the-arrivals",
        kind="undefined",
        message="{instruction} lifts the tx-count of {object} to zero when no arrival is pending",
        explanation="""\
All arrivals of the phase are spent, more bytes have come than were announced, and now an expect-tx makes up for
it. The phase has nothing left to wait for, but only arrivals and completions are said to complete one. The
texts do not settle whether it completes; mcheck reports it and does not choose.""",
        section="PTX ISA 9.0 sections 9.7.13.15.5.1 and 9.7.13.15.6",
        remedy="Announce the bytes before the last arrival of the phase, or in one instruction with it.",
        bad="""\
PTX expect-too-late
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;
}
expect undefined
""",
        good="""\
PTX expect-in-time
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;
  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
expect clean
""",
    ),
)
