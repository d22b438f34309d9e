"""Undefined behaviour of tensor copies and their maps, and of copies that outlive their CTA."""

from __future__ import annotations

from mcheck.findings.entry import Entry

ENTRIES = (
    Entry(
        code="UB401",
        name="start-coordinate-not-16-byte-aligned",
        kind="undefined",
        message="{instruction} starts at element {coordinate} of dimension 0, {offset} bytes, not a multiple of 16",
        explanation="""\
The start coordinate of dimension 0 times the element size has to be a multiple of 16 bytes, for loads, stores
and im2col alike. The texts do not say so; a Hopper chip traps (illegal instruction) on every other start, and
on these only.""",
        section="PTX ISA 9.0 section 9.7.9.27.1.2 (silent: observed on sm_90)",
        remedy="Start boxes at multiples of 16 bytes in dimension 0.",
        bad="""\
PTX start-at-8-bytes
{
  .global .align 128 .b8 src[256];
  .global .tensormap tm = { global_address = src, elemtype = f16, rank = 2, global_dim = {16, 8}, global_stride = {32},
    box_dim = {8, 8}, element_stride = {1, 1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .b8 buf[128];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buf], [tm, {4, 0}], [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect undefined
""",
        good="""\
PTX start-at-16-bytes
{
  .global .align 128 .b8 src[256];
  .global .tensormap tm = { global_address = src, elemtype = f16, rank = 2, global_dim = {16, 8}, global_stride = {32},
    box_dim = {8, 8}, element_stride = {1, 1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .b8 buf[128];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buf], [tm, {8, 0}], [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="UB402",
        name="store-at-negative-coordinate",
        kind="undefined",
        message="{instruction} stores at coordinate {coordinate} of dimension {dimension}",
        explanation="""\
A load may start outside the tensor, below zero too, and gets fill values there. A store or a reduction may run
past the end, where elements are skipped, but its start coordinates must not be negative: a Hopper chip traps.""",
        section="PTX ISA 9.2 section 9.7.9.25.5.1",
        remedy="Start stores at zero or above, and shift the box or the map instead.",
        bad="""\
PTX store-below-zero
{
  .global .align 128 .b8 dst[128];
  .global .tensormap tm = { global_address = dst, elemtype = u8, rank = 2, global_dim = {16, 8}, global_stride = {16},
    box_dim = {16, 4}, element_stride = {1, 1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .b8 buf[64];
}
P@cta 0 {
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [tm, {0, -1}], [buf];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect undefined
""",
        good="""\
PTX store-past-the-end
{
  .global .align 128 .b8 dst[128];
  .global .tensormap tm = { global_address = dst, elemtype = u8, rank = 2, global_dim = {16, 8}, global_stride = {16},
    box_dim = {16, 4}, element_stride = {1, 1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .b8 buf[64];
}
P@cta 0 {
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [tm, {0, 6}], [buf];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect clean
""",
    ),
    Entry(
        code="UB403",
        name="tensormap-fence-operand",
        kind="undefined",
        message="{instruction} does not name 128 bytes of global memory",
        explanation="""\
The acquire half of the tensormap proxy fence covers the 128 bytes of one map, and its generic address must lie
in global memory. tensormap.cp_fenceproxy copies 128 bytes from the own shared memory to global memory.""",
        section="PTX ISA 9.0 sections 9.7.13.4 and 9.7.13.16",
        remedy="Copy the map to global memory and fence there.",
        bad="""\
PTX tensormap-acquire-of-shared
{ .shared .align 128 .b8 map[128]; }
P@cta 0 { fence.proxy.tensormap::generic.acquire.gpu [map], 128; }
expect undefined
""",
        good="""\
PTX tensormap-acquire-of-global
{ .global .align 128 .b8 map[128]; }
P@cta 0 { fence.proxy.tensormap::generic.acquire.gpu [map], 128; }
expect clean
""",
    ),
    Entry(
        code="UB404",
        name="tensor-map-does-not-fit",
        kind="undefined",
        message="{instruction} does not fit its tensor map: {detail}",
        explanation="""\
The map fixes rank, element type, mode (tiled or im2col), box and swizzle; the instruction's dimension, mode,
reduction and shared address have to go with it, and the map itself has to keep the limits of its encoding. A
tensor copy whose operand is no tensor map belongs here too.""",
        section="PTX ISA 9.0 sections 5.5 and 9.7.9.27.1.2",
        remedy="Make the instruction and the fields of the map agree.",
        bad="""\
PTX one-dimension-of-two
{
  .global .align 128 .b8 src[128];
  .global .tensormap tm = { global_address = src, elemtype = u8, rank = 2, global_dim = {16, 8}, global_stride = {16},
    box_dim = {16, 4}, element_stride = {1, 1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .b8 buf[64];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;
  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buf], [tm, {0}], [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect undefined
""",
        good="""\
PTX two-dimensions-of-two
{
  .global .align 128 .b8 src[128];
  .global .tensormap tm = { global_address = src, elemtype = u8, rank = 2, global_dim = {16, 8}, global_stride = {16},
    box_dim = {16, 4}, element_stride = {1, 1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .b8 buf[64];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buf], [tm, {0, 0}], [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="UB405",
        name="im2col-operand-out-of-range",
        kind="undefined",
        message="{instruction} has im2col operand {value} in dimension {dimension}, outside its range",
        explanation="""\
An im2col offset has 16 bits in a map of rank 3, 8 bits in one of rank 4 and 5 bits in one of rank 5, all
unsigned. The spatial start coordinates have to lie in the bounding box that the corners of the map describe.""",
        section="PTX ISA 9.0 sections 5.5.4 and 9.7.9.27.1.2",
        remedy="Keep offsets and start coordinates in these ranges.",
        bad="""\
PTX im2col-offset-300
{
  .global .align 128 .b8 src[512];
  .global .tensormap tm = { global_address = src, elemtype = u8, rank = 4, global_dim = {16, 4, 4, 2},
    global_stride = {16, 64, 256}, element_stride = {1, 1, 1, 1}, interleave_layout = none, swizzle_mode = none,
    swizzle_atomicity = 16B, fill_mode = zero, pixel_box_lower_corner = {0, 0}, pixel_box_upper_corner = {0, 0},
    channels_per_pixel = 16, pixels_per_column = 4 };
  .shared .align 128 .b8 buf[64];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;
  mov.u16 r1, 300;
  mov.u16 r2, 0;
  cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes
    [buf], [tm, {0, 0, 0, 0}], [bar], {r1, r2};
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect undefined
""",
        good="""\
PTX im2col-offset-1
{
  .global .align 128 .b8 src[512];
  .global .tensormap tm = { global_address = src, elemtype = u8, rank = 4, global_dim = {16, 4, 4, 2},
    global_stride = {16, 64, 256}, element_stride = {1, 1, 1, 1}, interleave_layout = none, swizzle_mode = none,
    swizzle_atomicity = 16B, fill_mode = zero, pixel_box_lower_corner = {0, 0}, pixel_box_upper_corner = {0, 0},
    channels_per_pixel = 16, pixels_per_column = 4 };
  .shared .align 128 .b8 buf[64];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;
  mov.u16 r1, 1;
  mov.u16 r2, 0;
  cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes
    [buf], [tm, {0, 0, 0, 0}], [bar], {r1, r2};
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="UB501",
        name="exit-before-the-source-is-read",
        kind="undefined",
        goes_on=True,
        message="{thread} may end its CTA before {instruction} has read {object}",
        explanation="""\
The shared memory of a CTA goes to another one when the CTA has ended. A bulk or tensor store, or a
copy to another CTA of the cluster, that has not read its source by then may take somebody else's bytes. The texts are
silent here; the programming guide waits. An H200 keeps the memory of a CTA until its copies are done, and kernels in
use leave the last wait out, so this is for review. For the stores themselves the end of the kernel is enough.""",
        section="PTX ISA 9.0 section 9.7.9.25.1; the end of a CTA is our reading",
        level="review",
        remedy="Wait before the CTA ends: for a group by cp.async.bulk.wait_group.read 0 in the issuing thread, else"
        " for the mbarrier. After a copy to another CTA wait for a thread that has seen its completion, by a last"
        " barrier.cluster say.",
        bad="""\
PTX store-and-leave
{ .global .align 16 .b8 dst[16]; .shared .align 16 .b8 buf[16]; }
P@cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
}
expect undefined
""",
        good="""\
PTX store-wait-and-leave
{ .global .align 16 .b8 dst[16]; .shared .align 16 .b8 buf[16]; }
P@cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
}
expect clean
""",
    ),
    Entry(
        code="UB502",
        name="remote-access-after-exit",
        kind="undefined",
        goes_on=True,
        message="{thread} may use {object} after its CTA has ended",
        explanation="""\
Shared memory and the mbarrier objects in it live as long as their CTA. An access, a copy or an arrival from another CTA
of the cluster must be over before the last thread of the owner exits, or it meets memory that belongs to somebody else.
Nothing but synchronisation with a thread of the owner, most simply a last barrier.cluster, makes sure of that.""",
        section="PTX ISA 9.0 section 9.7.13.3; the end of a CTA is our reading",
        remedy="End the owner with barrier.cluster.arrive and barrier.cluster.wait, after its peers' accesses.",
        bad="""\
PTX read-from-the-departed
{ .shared .u32 word; }
reader@cluster 0, cta 0 {
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ld.shared::cluster.u32 r0, [word@1];
}
owner@cluster 0, cta 1 {
  st.shared.u32 [word], 5;
  barrier.cluster.arrive;
  barrier.cluster.wait;
}
expect undefined
""",
        good="""\
PTX read-before-leaving
{ .shared .u32 word; }
reader@cluster 0, cta 0 {
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ld.shared::cluster.u32 r0, [word@1];
  barrier.cluster.arrive;
  barrier.cluster.wait;
}
owner@cluster 0, cta 1 {
  st.shared.u32 [word], 5;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  barrier.cluster.arrive;
  barrier.cluster.wait;
}
expect clean
""",
    ),
    Entry(
        code="UB503",
        name="remote-access-before-start",
        kind="undefined",
        goes_on=True,
        message="{instruction} uses {object}, whose CTA may not have started",
        explanation="""\
The CTAs of a cluster are scheduled together but need not begin at the same time. Until one of its threads is known to
run, the shared memory of another CTA may not be there yet. The first use of a peer's memory comes after a
barrier.cluster, or after any other synchronisation with a thread of that CTA.""",
        section="PTX ISA 9.0 section 9.7.13.3; the beginning of a CTA is our reading",
        remedy="Begin with barrier.cluster.arrive and barrier.cluster.wait in every CTA of the cluster.",
        bad="""\
PTX store-before-the-peer-starts
{ .shared .u32 word; }
writer@cluster 0, cta 0 {
  st.shared::cluster.u32 [word@1], 5;
  barrier.cluster.arrive;
  barrier.cluster.wait;
}
owner@cluster 0, cta 1 {
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ld.shared.u32 r0, [word];
}
expect undefined
""",
        good="""\
PTX store-after-the-peer-started
{ .shared .u32 word; }
writer@cluster 0, cta 0 {
  barrier.cluster.arrive;
  barrier.cluster.wait;
  st.shared::cluster.u32 [word@1], 5;
  barrier.cluster.arrive;
  barrier.cluster.wait;
}
owner@cluster 0, cta 1 {
  barrier.cluster.arrive;
  barrier.cluster.wait;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ld.shared.u32 r0, [word];
}
expect clean
""",
    ),
    Entry(
        code="UB504",
        name="exit-before-the-copy-is-complete",
        kind="undefined",
        goes_on=True,
        message="{thread} copies to {object}, whose CTA may end before the copy is complete",
        explanation="""\
The shared memory of a CTA goes to another one when the CTA has ended. A bulk or tensor copy that has not written its
destination by then may write to somebody else's memory. The texts are silent here; a kernel that leaves should have
waited for every copy that it started, also for those whose data it no longer wants.""",
        section="PTX ISA 9.0 section 9.7.9.25.1; the end of a CTA is our reading",
        level="review",
        remedy="Wait for the phase of the copy's mbarrier in some thread of the CTA before its last thread ends.",
        bad="""\
PTX load-and-leave
{ .global .align 16 .b8 src[16]; .shared .align 16 .b8 buf[16]; .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
}
expect undefined
""",
        good="""\
PTX load-wait-and-leave
{ .global .align 16 .b8 src[16]; .shared .align 16 .b8 buf[16]; .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
)
