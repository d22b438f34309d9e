"""Undefined behaviour by operands: sizes, addresses, masks and values that may not be when an instruction executes."""

from __future__ import annotations

from mcheck.findings.entry import OF_THE_INSTRUCTION, Entry

ENTRIES = (
    Entry(
        code="UB101",
        name="bulk-size-not-a-multiple-of-16",
        kind="undefined",
        message="{instruction} has size {size}, which is not a multiple of 16",
        explanation="""\
Bulk copies move whole units of 16 bytes. For any other size the ISA leaves the behaviour undefined, whether the
size is a constant or comes from a register. Size 0 is a multiple of 16 and copies nothing.""",
        section="PTX ISA 9.0 section 9.7.9.25.4.1",
        remedy="Round the size up to a multiple of 16 (and pad the buffers), or copy the rest with ordinary accesses.",
        bad="""\
PTX bulk-24
{ .global .align 16 .b8 dst[32]; .shared .align 16 .b8 buf[32]; }
P@cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 24;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect undefined
""",
        good="""\
PTX bulk-32
{ .global .align 16 .b8 dst[32]; .shared .align 16 .b8 buf[32]; }
P@cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 32;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect clean
""",
    ),
    Entry(
        code="UB102",
        name="misaligned-address",
        kind="undefined",
        message="{instruction} accesses address {address}, which is not aligned to {alignment} bytes",
        explanation="""\
An access must be aligned to its size: a vector to the whole vector, cp.async to its copy size, a bulk copy to
16 bytes on both sides, an mbarrier to 8. Tensor copies ask for more with some swizzles.""",
        section="PTX ISA 9.0 sections 6.4.1 and 9.7.9.25.4.1",
        remedy="Align the object (.align) and keep the offset a multiple of the access size.",
        bad="""\
PTX bulk-store-off-by-8
{ .global .align 16 .b8 dst[32]; .shared .align 16 .b8 buf[16]; }
P@cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [dst + 8], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect undefined
""",
        good="""\
PTX bulk-store-aligned
{ .global .align 16 .b8 dst[32]; .shared .align 16 .b8 buf[16]; }
P@cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [dst + 16], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect clean
""",
    ),
    Entry(
        code="UB103",
        name="access-leaves-its-object",
        kind="undefined",
        message="{instruction} accesses bytes outside {object}",
        explanation="""\
The ISA asks that source and destination stay inside their state spaces. A checker that lets an access run from
one object into its neighbour would bless programs whose layout happens to be kind, so mcheck asks for more: an
access stays inside the declared object in which it starts.""",
        section="PTX ISA 9.0 sections 6.4.1 and 9.7.9.25.4.1",
        remedy="Declare the object as large as the access needs, or correct the offset or the size.",
        bad="""\
PTX bulk-store-too-long
{ .global .align 16 .b8 dst[32]; .shared .align 16 .b8 buf[64]; }
P@cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 64;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect undefined
""",
        good="""\
PTX bulk-store-fits
{ .global .align 16 .b8 dst[64]; .shared .align 16 .b8 buf[64]; }
P@cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 64;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect clean
""",
    ),
    Entry(
        code="UB104",
        name="src-size-above-cp-size",
        kind="undefined",
        message="{instruction} has src-size {src_size}, above its copy size {size}",
        explanation="""\
The src-size operand of cp.async says how many bytes are read; the rest of the copy size is filled with zeros.
More bytes than are copied is undefined. The text asks for less than the copy size; mcheck takes an equal size
as a plain copy.""",
        section="PTX ISA 9.0 section 9.7.9.25.3.1",
        remedy="Limit src-size to the copy size.",
        bad="""\
PTX src-size-8-of-4
{ .global .align 16 .b8 src[16]; .shared .align 16 .b8 buf[16]; }
P@cta 0 {
  mov.u32 r0, 8;
  cp.async.ca.shared.global [buf], [src], 4, r0;
  cp.async.wait_all;
}
expect undefined
""",
        good="""\
PTX src-size-2-of-4
{ .global .align 16 .b8 src[16]; .shared .align 16 .b8 buf[16]; }
P@cta 0 {
  mov.u32 r0, 2;
  cp.async.ca.shared.global [buf], [src], 4, r0;
  cp.async.wait_all;
}
expect clean
""",
    ),
    Entry(
        code="UB105",
        name="copy-into-a-cta-it-may-not-name",
        kind="undefined",
        message="{instruction} names {object}, which lies in a CTA that it may not name",
        explanation="""\
A bulk or tensor load with a .shared::cta destination writes the shared memory of its own CTA only. A copy from
.shared::cta to .shared::cluster needs a destination in another CTA; a reduction may be into one's own. The
mbarrier of a tensor load lies in the CTA of the destination, or with .cta_group::2 in its pair; st.async and
red.async put theirs beside their destination, need a cluster of more than one CTA, and red.async works on another
one only.""",
        section="PTX ISA 9.0 sections 9.7.9.25.4.1, 9.7.9.27.1.2 and 9.7.9.12",
        remedy="Use the form whose destination is .shared::cluster, or name an address of the right CTA.",
        bad="""\
PTX load-into-the-peer
{
  .global .align 16 .b8 src[16];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
P@cluster 0, cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf@1], [src], 16, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
Q@cluster 0, cta 1 { }
expect undefined
""",
        good="""\
PTX load-into-the-own-cta
{
  .global .align 16 .b8 src[16];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
P@cluster 0, cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
Q@cluster 0, cta 1 { }
expect clean
""",
    ),
    Entry(
        code="UB106",
        name="overlapping-cp-async-in-one-group",
        kind="undefined",
        message="{first} and {second} belong to one cp.async group and write the same bytes",
        explanation="""\
The copies of one cp.async group have no order among each other. Two of them that write the same location are
undefined, not only a race about which one stays. A cp.async.mbarrier.arrive between the two tells of the first, so
that the second may be ordered behind it; if it is not, the two race.""",
        section="PTX ISA 9.0 section 9.7.9.25.3.1",
        remedy="Give the copies different destinations, or wait for the first group before the second copy is issued.",
        bad="""\
PTX two-copies-one-place
{ .global .align 16 .b8 src[32]; .shared .align 16 .b8 buf[32]; }
P@cta 0 {
  cp.async.cg.shared.global [buf], [src], 16;
  cp.async.cg.shared.global [buf], [src + 16], 16;
  cp.async.commit_group;
  cp.async.wait_group 0;
}
expect undefined
""",
        good="""\
PTX two-copies-two-places
{ .global .align 16 .b8 src[32]; .shared .align 16 .b8 buf[32]; }
P@cta 0 {
  cp.async.cg.shared.global [buf], [src], 16;
  cp.async.cg.shared.global [buf + 16], [src + 16], 16;
  cp.async.commit_group;
  cp.async.wait_group 0;
}
expect clean
""",
    ),
    Entry(
        code="UB107",
        name="multicast-to-no-cta",
        kind="undefined",
        message="{instruction} has ctaMask {mask}, which {fault}",
        explanation="""\
Every bit of ctaMask names the CTA of that %cluster_ctarank as a destination of a multicast copy, in its data
and in its mbarrier signal. A bit beyond the cluster names nobody, and a mask without bits makes a copy with no
destination.""",
        section="PTX ISA 9.2 section 9.7.9.25.4.1",
        remedy="Set bits of CTAs that the cluster has, at least one.",
        bad="""\
PTX multicast-beyond-the-cluster
{
  .global .align 16 .b8 src[16];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
P@cluster 0, cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  mov.u16 r1, 5;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [buf], [src], 16, [bar], r1;
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
Q@cluster 0, cta 1 { }
expect undefined
""",
        good="""\
PTX multicast-within-the-cluster
{
  .global .align 16 .b8 src[16];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
P@cluster 0, cta 0..2 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  if (%cluster_ctarank == 0) {
    mov.u16 r1, 3;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [buf], [src], 16, [bar], r1;
  }
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="UB108",
        name="address-outside-its-state-space",
        kind="undefined",
        message="{instruction} names state space {space}, but address {address} lies in {object}",
        explanation="""\
An instruction with a state space takes addresses of that space only. With a generic address the space is found
from the address; where an instruction allows some spaces only, a generic address of another one is undefined
too.""",
        section="PTX ISA 9.0 sections 5.1 and 6.4.1",
        remedy="Name the space in which the object lies, or use generic addressing.",
        remedies=(
            ("has no CTA of rank", "Let the rank be below the number of CTAs of the cluster, %cluster_nctarank."),
            ("of another cluster", "Pass data of another cluster through .global: its shared memory cannot be named."),
        ),
        bad="""\
PTX shared-load-of-global
{ .global .u32 x; }
P@cta 0 {
  mov.u64 %rd1, x;
  ld.shared.u32 r0, [%rd1];
}
expect undefined
""",
        good="""\
PTX generic-load-of-global
{ .global .u32 x; }
P@cta 0 {
  mov.u64 %rd1, x;
  ld.u32 r0, [%rd1];
}
expect clean
""",
    ),
    Entry(
        code="UB109",
        name="operand-without-meaning",
        kind="undefined",
        message="{instruction} has an operand without meaning: {detail}",
        explanation="""\
Some values make an instruction meaningless when it is executed: a phase parity that is neither 0 nor 1, a member
mask that leaves out the executing lane, a number that no field of a tensor map has. A division by zero is none of
these: its result is unspecified and nothing else (9.7.1.8), so that it counts as a value that nobody knows, as
contents that nothing has written do.""",
        section=OF_THE_INSTRUCTION,
        remedy="Keep the operand in the range that the section of the instruction gives.",
        bad="""\
PTX parity-2
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 2;
}
expect undefined
""",
        good="""\
PTX parity-0
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="UB110",
        name="fill-size-not-a-multiple-of-8",
        kind="undefined",
        message="{instruction} has size {size}, which is not a multiple of 8",
        explanation="""\
st.bulk fills shared memory with zeros in units of 8 bytes. For any other size the ISA leaves the behaviour
undefined, whether the size is a constant or comes from a register.""",
        section="PTX ISA 9.0 section 9.7.9.13",
        remedy="Round the size up to a multiple of 8 (and pad the object), or store the rest with ordinary accesses.",
        bad="""\
PTX fill-12
target sm_100a
{ .shared .align 8 .b8 buf[16]; }
P@cta 0 {
  st.bulk.weak.shared::cta [buf], 12, 0;
}
expect undefined
""",
        good="""\
PTX fill-16
target sm_100a
{ .shared .align 8 .b8 buf[16]; }
P@cta 0 {
  st.bulk.weak.shared::cta [buf], 16, 0;
}
expect clean
""",
    ),
)
