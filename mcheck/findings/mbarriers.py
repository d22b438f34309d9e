"""Undefined use of mbarrier objects: their life cycle, place and counts."""

from __future__ import annotations

from mcheck.findings.entry import Entry

ENTRIES = (
    Entry(
        code="UB201",
        name="no-mbarrier-there",
        kind="undefined",
        message="{instruction} works on {object}, which holds no mbarrier",
        explanation="""\
An mbarrier exists from mbarrier.init to mbarrier.inval. Every other operation on a place without one is
undefined; that includes the signal of an asynchronous operation. An init by another thread has to be published
first: by a barrier in the CTA, by fence.mbarrier_init and a cluster barrier in the cluster.""",
        section="PTX ISA 9.0 section 9.7.13.15.3",
        remedy="Initialise the object before, and put a barrier between the init and the other threads' operations.",
        bad="""\
PTX arrive-without-init
{ .shared .align 8 .b64 bar; }
P@cta 0 { mbarrier.arrive.shared::cta.b64 _, [bar]; }
expect undefined
""",
        good="""\
PTX arrive-after-init
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
expect clean
""",
    ),
    Entry(
        code="UB202",
        name="live-mbarrier-touched",
        kind="undefined",
        message="{instruction} accesses {object}, which holds a live mbarrier, as memory or initialises it again",
        explanation="""\
The contents of an mbarrier are opaque. While it is valid only mbarrier operations may touch it; a load, a store
or an atomic on its bytes is undefined, even if it only reads. So is a second mbarrier.init: it does not restart
the object.""",
        section="PTX ISA 9.0 sections 9.7.13.15 and 9.7.13.15.9",
        remedy="Keep the object apart from data, and invalidate it before its memory is used or initialised again.",
        bad="""\
PTX store-over-a-live-mbarrier
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  st.shared.u64 [bar], 0;
}
expect undefined
""",
        good="""\
PTX store-after-inval
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.inval.shared::cta.b64 [bar];
  st.shared.u64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="UB203",
        name="live-mbarrier-repurposed",
        kind="undefined",
        message="{instruction} uses {object}, which holds a live mbarrier, as a buffer",
        explanation="""\
The place of an mbarrier may serve for something else, another mbarrier included, only after mbarrier.inval. A
copy whose source or destination covers a live object reuses its memory too early.""",
        section="PTX ISA 9.0 section 9.7.13.15.3",
        remedy="Invalidate the object when nothing on it is outstanding, and order that before the reuse.",
        bad="""\
PTX copy-over-a-live-mbarrier
{ .global .align 16 .b8 src[16]; .shared .align 16 .b8 pool[16]; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [pool], 1;
  cp.async.cg.shared.global [pool], [src], 16;
  cp.async.wait_all;
}
expect undefined
""",
        good="""\
PTX copy-after-inval
{ .global .align 16 .b8 src[16]; .shared .align 16 .b8 pool[16]; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [pool], 1;
  mbarrier.inval.shared::cta.b64 [pool];
  cp.async.cg.shared.global [pool], [src], 16;
  cp.async.wait_all;
}
expect clean
""",
    ),
    Entry(
        code="UB204",
        name="mbarrier-of-another-cta",
        kind="undefined",
        message="{instruction} works on {object}, but is for mbarriers of the own CTA only",
        explanation="""\
Only expect_tx, complete_tx, arrive and arrive_drop work on an mbarrier of another CTA of the cluster. To
initialise, to invalidate, to test and to wait, and for cp.async.mbarrier.arrive, the object must be in the
shared memory of the own CTA.""",
        section="PTX ISA 9.0 section 9.7.13.15.8",
        remedy="Let a thread of the owning CTA wait and pass the news on, or give each CTA an mbarrier of its own.",
        remedies=(
            ("is not in shared memory", "Put the mbarrier into shared memory: it can be nowhere else."),
            (
                "of another cluster",
                "Give each cluster mbarriers of its own: the memory of another one cannot be named.",
            ),
        ),
        bad="""\
PTX wait-on-the-peer
{ .shared .align 8 .b64 bar; }
P@cluster 0, cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
Q@cluster 0, cta 1 {
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar@0], 0;
}
expect undefined
""",
        good="""\
PTX wait-on-the-own
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
        code="UB205",
        name="mbarrier-count-out-of-range",
        kind="undefined",
        message="{instruction} takes a count of {object} out of its range: {detail}",
        explanation="""\
The expected count lies in 1..2^20-1, the pending count in 0..2^20-1, the tx-count in -(2^20-1)..2^20-1. An
arrival when none is pending, a count of 0 and more bytes than the tx-count holds are undefined. Often it is a
thread too many, or one phase in which somebody arrives twice.""",
        section="PTX ISA 9.0 section 9.7.13.15.2",
        remedy=(
            "Initialise with the number of arrivals that a phase gets, let each participant arrive once, and let a "
            "phase announce less than 1 MiB."
        ),
        remedies=(
            (
                " arrivals in phase",
                (
                    "The operand of an arrive is a number of arrivals, no more than the init counts; bytes are "
                    "announced by mbarrier.arrive.expect_tx."
                ),
            ),
        ),
        bad="""\
PTX two-arrivals-at-once-of-one
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar], 2;
}
expect undefined
""",
        good="""\
PTX two-arrivals-of-two
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 2;
  mbarrier.arrive.shared::cta.b64 _, [bar], 2;
}
expect clean
""",
    ),
    Entry(
        code="UB206",
        name="nocomplete-arrive-completes",
        kind="undefined",
        message="{instruction} would complete phase {phase} of {object} in spite of .noComplete",
        explanation="""\
With .noComplete the program promises that the arrive does not complete the phase. If it would, by being the
last pending arrival with no bytes outstanding, the behaviour is undefined.""",
        section="PTX ISA 9.0 sections 9.7.13.15.13 and 9.7.13.15.14",
        remedy="Leave .noComplete out where the arrival may be the last.",
        bad="""\
PTX nocomplete-last
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [bar], 1;
}
expect undefined
""",
        good="""\
PTX nocomplete-not-last
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 2;
  mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
expect clean
""",
    ),
    Entry(
        code="UB207",
        name="last-participant-drops",
        kind="undefined",
        message="{instruction} leaves {object} without an expected arrival",
        explanation="""\
arrive_drop lowers the number of arrivals that all later phases expect. An mbarrier that expects none is not a
valid one.""",
        section="PTX ISA 9.0 section 9.7.13.15.14",
        remedy=(
            "Let the last participant arrive without dropping out, and invalidate the object if it is "
            "not needed any more."
        ),
        bad="""\
PTX drop-the-last
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive_drop.shared::cta.b64 _, [bar];
}
expect undefined
""",
        good="""\
PTX drop-one-of-two
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 2;
  mbarrier.arrive_drop.shared::cta.b64 _, [bar];
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
expect clean
""",
    ),
    Entry(
        code="UB208",
        name="cp-async-arrive-overflows",
        kind="undefined",
        message="{instruction} raises the pending count of {object} above its maximum",
        explanation="""\
cp.async.mbarrier.arrive without .noinc adds a pending arrival when it is executed, which its own later arrival
takes away again. The pending count may not exceed 2^20-1 in between.""",
        section="PTX ISA 9.0 section 9.7.13.15.15",
        remedy="Count these arrivals at the init and use .noinc, or initialise with a smaller count.",
        bad="""\
PTX cp-async-arrive-at-the-maximum
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1048575;
  cp.async.mbarrier.arrive.shared::cta.b64 [bar];
}
expect undefined
""",
        good="""\
PTX cp-async-arrive
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  cp.async.mbarrier.arrive.shared::cta.b64 [bar];
  mbarrier.arrive.shared::cta.b64 _, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
)
