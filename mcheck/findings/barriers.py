"""Misuse of the barriers of a CTA and of a cluster."""

from __future__ import annotations

from mcheck.findings.entry import OF_THE_INSTRUCTION, Entry

ENTRIES = (
    Entry(
        code="UB301",
        name="barrier-thread-count",
        kind="undefined",
        message="{instruction} has thread count {count}, which is not a positive multiple of the warp size",
        explanation="""\
A barrier counts warps, so its thread count is a multiple of 32. An arrive needs a count, since it does not wait
for all; zero is none.""",
        section="PTX ISA 9.0 section 9.7.13.1",
        remedy="Count whole warps: 32 times the number of warps that take part, lone threads included.",
        bad="""\
PTX barrier-of-48
{ }
P@cta 0, warp 0..2, lane 0 {
  mov.u32 r0, 48;
  barrier.sync 1, r0;
}
expect undefined
""",
        good="""\
PTX barrier-of-64
{ }
P@cta 0, warp 0..2, lane 0 {
  mov.u32 r0, 64;
  barrier.sync 1, r0;
}
expect clean
""",
    ),
    Entry(
        code="UB302",
        name="barrier-number",
        kind="undefined",
        message="{instruction} names barrier {number}; a CTA has barriers 0 to 15",
        explanation="""\
Every CTA has sixteen barriers. A number from a register is taken as it is, and one beyond 15 names none.""",
        section="PTX ISA 9.0 section 9.7.13.1",
        remedy="Use a number from 0 to 15, or an mbarrier where sixteen are too few.",
        bad="""\
PTX barrier-16
{ }
P@cta 0 {
  mov.u32 r0, 16;
  barrier.sync r0, 32;
}
expect undefined
""",
        good="""\
PTX barrier-15
{ }
P@cta 0 {
  mov.u32 r0, 15;
  barrier.sync r0, 32;
}
expect clean
""",
    ),
    Entry(
        code="UB304",
        name="barrier-uses-differ",
        kind="undefined",
        message="{first} and {second} meet in one round of barrier {number} with different kinds or counts",
        explanation="""\
All participants in one round of a barrier give the same thread count, and a barrier with a reduction is not
mixed with barrier.sync or barrier.arrive. Otherwise the result is unpredictable. Lanes of one warp that come by
instructions of their own are participants like any other (Q35).""",
        section="PTX ISA 9.0 section 9.7.13.1",
        remedy="Use one count and one kind for each barrier, or two barriers.",
        bad="""\
PTX two-counts
{ }
P@cta 0 { barrier.sync 1, 64; }
Q@cta 0 { barrier.sync 1, 96; }
expect undefined
""",
        good="""\
PTX one-count
{ }
P@cta 0 { barrier.sync 1, 64; }
Q@cta 0 { barrier.sync 1, 64; }
expect clean
""",
    ),
    Entry(
        code="UB305",
        name="aligned-barrier-in-divergent-code",
        kind="undefined",
        message="{first} and {second} are different aligned barriers, executed by threads of one warp",
        explanation="""\
bar and the .aligned forms of barrier and barrier.cluster ask that all threads of the warp execute the same barrier
instruction. In code where the threads of a warp go different ways, one of them to another barrier, that is undefined.
A thread that exits is not waited for: a barrier is there for those that have not exited (Q33).""",
        section="PTX ISA 9.0 sections 9.7.13.1 and 9.7.13.3",
        remedy="Move the barrier out of the divergent code, or use the form without .aligned.",
        bad="""\
PTX divergent-bar
{ }
P@cta 0, warp 0, lane 0..2 {
  if (%laneid == 0) {
    bar.sync 0;
  } else {
    bar.sync 1;
  }
}
expect undefined
""",
        good="""\
PTX convergent-bar
{ }
P@cta 0, warp 0, lane 0..2 {
  if (%laneid == 0) {
    mov.u32 r0, 1;
  }
  bar.sync 0;
}
expect clean
""",
    ),
    Entry(
        code="UB306",
        name="cluster-barrier-out-of-step",
        kind="undefined",
        message="{instruction} is out of step: every thread alternates between barrier.cluster.arrive and wait",
        explanation="""\
In each phase of the cluster barrier a thread arrives once and then waits. A second arrive before the wait, or a
wait without an arrive, is undefined.""",
        section="PTX ISA 9.0 section 9.7.13.3",
        remedy="Pair each barrier.cluster.arrive with one barrier.cluster.wait in every thread.",
        bad="""\
PTX cluster-arrive-twice
{ }
P@cluster 0, cta 0..2 {
  barrier.cluster.arrive.release;
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}
expect undefined
""",
        good="""\
PTX cluster-arrive-and-wait
{ }
P@cluster 0, cta 0..2 {
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}
expect clean
""",
    ),
    Entry(
        code="UB307",
        name="aligned-instruction-in-divergent-code",
        kind="undefined",
        message="{instruction} is not executed by all lanes of its warp",
        explanation="""\
The instructions of wgmma and of tensor memory, ldmatrix, stmatrix, setmaxnreg are .sync.aligned: all threads of the
warp execute the same one. A warp of which some lanes do and others do not, because a leader was
elected or the lane compared with 0, is undefined. tcgen05.mma, cp and commit are for one thread; wgmma and
tcgen05.alloc, ld, st, wait and dealloc are not. Those of wgmma and setmaxnreg are for all warps of the warpgroup: in
sketches the warps of one role are held against each other.""",
        section=OF_THE_INSTRUCTION,
        remedy="Let all lanes of the warp, and all warps of a warpgroup, execute it: take it out of the code that only "
        "some of them come to.",
        goes_on=True,
        bad="""\
PTX wgmma-by-a-leader
{
  .shared .align 128 .b8 a[1024];
  .shared .align 128 .b8 b[1024];
}
P@cta 0, warp 0, lane 0..2 {
  if (%laneid == 0) {
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d}, [a, 1024], [b, 1024];
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
  }
}
expect undefined
""",
        good="""\
PTX wgmma-by-a-warp
{
  .shared .align 128 .b8 a[1024];
  .shared .align 128 .b8 b[1024];
}
P@cta 0, warp 0, lane 0..2 {
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d}, [a, 1024], [b, 1024];
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
}
expect clean
""",
    ),
)
