"""Races: conflicting accesses that nothing orders, or whose order in time gives no visibility."""

from __future__ import annotations

from mcheck.findings.entry import Entry

ENTRIES = (
    Entry(
        code="RACE001",
        name="unordered-generic-accesses",
        kind="race",
        goes_on=True,
        message="{first} and {second} touch the same bytes and nothing orders them",
        explanation="""\
Two accesses conflict if they overlap and one of them writes. Conflicting accesses must be ordered by causality,
or both be strong with scopes that include each other's thread. A weak access has no scope, so only an order
helps: a release in the one thread that an acquire in the other thread observes, a barrier, or a chain of these.
Without it the reader may see the old value, the new one, and on a weak access even values that no longer fit
each other.""",
        section="PTX ISA 9.0 sections 8.7 and 8.9.5",
        remedy="Release after the first access and acquire before the second, or put a barrier between them.",
        bad="""\
PTX relaxed-flag
{ .global .u32 data; .global .u32 flag; }
producer@cta 0 {
  st.global.u32 [data], 1;
  st.relaxed.gpu.global.u32 [flag], 1;
}
consumer@cta 1 {
  await ld.relaxed.gpu.global.u32 r0, [flag] == 1;
  ld.global.u32 r1, [data];
}
expect race
""",
        good="""\
PTX release-acquire-flag
{ .global .u32 data; .global .u32 flag; }
producer@cta 0 {
  st.global.u32 [data], 1;
  st.release.gpu.global.u32 [flag], 1;
}
consumer@cta 1 {
  await ld.acquire.gpu.global.u32 r0, [flag] == 1;
  ld.global.u32 r1, [data];
}
expect clean
""",
    ),
    Entry(
        code="RACE002",
        name="mixed-size-race",
        kind="race",
        goes_on=True,
        message="{first} and {second} overlap in part only and nothing orders them",
        explanation="""\
Strong accesses of two threads are morally strong only if they overlap completely. If they overlap in part and
causality does not order them, the race is of mixed size, and then the axioms hold for nothing in the whole
program: this is more than a doubtful value in one register.""",
        section="PTX ISA 9.0 sections 8.7 and 8.7.2",
        remedy="Access the bytes with one width everywhere, or order the accesses.",
        bad="""\
PTX half-of-a-word
{ .global .u32 x; }
writer@cta 0 { st.relaxed.gpu.global.u32 [x], 65537; }
reader@cta 1 { ld.relaxed.gpu.global.u16 r0, [x]; }
expect race
""",
        good="""\
PTX whole-word
{ .global .u32 x; }
writer@cta 0 { st.relaxed.gpu.global.u32 [x], 65537; }
reader@cta 1 { ld.relaxed.gpu.global.u32 r0, [x]; }
expect clean
""",
    ),
    Entry(
        code="RACE003",
        name="access-during-asynchronous-operation",
        kind="race",
        goes_on=True,
        message="{first} conflicts with {second}, which may still be in flight",
        explanation="""\
The memory accesses of an asynchronous operation are not in program order. They come after the instructions that
precede it, and what follows is ordered after them only through a wait that observes its completion: a
wait_group of the issuing thread that covers its group (with .read: for its source only), or a wait on its
mbarrier that returns true. Until then its destination may not be touched and its source may not be changed; a
barrier alone completes nothing.""",
        section="PTX ISA 9.0 sections 8.9.1.1, 9.7.9.25.1 and 9.7.9.25.2",
        remedy=(
            "Wait for the completion first; another thread needs a barrier or a release and acquire after that wait."
        ),
        bad="""\
PTX read-before-the-wait
{
  .global .align 16 .b8 src[16];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
  ld.shared.u32 r0, [buf];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect race
""",
        good="""\
PTX read-after-the-wait
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
  ld.shared.u32 r0, [buf];
}
expect clean
""",
    ),
    Entry(
        code="RACE004",
        name="generic-write-invisible-to-async-proxy",
        kind="race",
        goes_on=True,
        message="{first} comes before {second} in time, but no proxy fence makes it visible to the async proxy",
        explanation="""\
Bulk copies, tensor copies and wgmma access memory through the async proxy, ordinary loads and stores through
the generic proxy. An order in time carries a generic write over to the async proxy only if a fence.proxy.async
that covers the state space lies on the way: after the write and before whatever hands it over, or in the
issuing thread before the operation. Hardware shows stale data without it.""",
        section="PTX ISA 9.0 sections 8.6, 8.9.5 and 9.7.13.4",
        remedy=(
            "Execute fence.proxy.async (with the space of the bytes, or none) after the write and before the hand-over."
        ),
        bad="""\
PTX store-without-proxy-fence
{ .global .align 16 .b8 dst[16]; .shared .align 16 .b8 buf[16]; }
P@cta 0 {
  st.shared.u32 [buf], 7;
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect race
""",
        good="""\
PTX store-with-proxy-fence
{ .global .align 16 .b8 dst[16]; .shared .align 16 .b8 buf[16]; }
P@cta 0 {
  st.shared.u32 [buf], 7;
  fence.proxy.async.shared::cta;
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect clean
""",
    ),
    Entry(
        code="RACE005",
        name="proxy-fence-on-one-side-of-a-cluster",
        kind="race",
        goes_on=True,
        level="review",
        message="only one side of the hand-over from {first} to {second} in another CTA has a proxy fence",
        explanation="""\
Within a CTA one fence.proxy.async on the path is enough. From CTA to CTA the ISA shows pairs only: a release
half before the arrive and an acquire half after the wait. A bi-directional fence acts within the thread that
executes it, so it is open whether one at either end covers accesses of another CTA. With a fence on one side
only this is left to review.""",
        section="PTX ISA 9.0 sections 8.6 and 9.7.13.4",
        remedy="Execute fence.proxy.async before the arrive in the one CTA and after the wait in the other.",
        bad="""\
PTX remote-write-one-fence
{ .global .align 16 .b8 dst[16]; .shared .align 16 .b8 buf[16]; }
issuer@cluster 0, cta 0 {
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
writer@cluster 0, cta 1 {
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  st.shared::cluster.u32 [buf@0], 7;
  fence.proxy.async;
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}
expect race
""",
        good="""\
PTX remote-write-two-fences
{ .global .align 16 .b8 dst[16]; .shared .align 16 .b8 buf[16]; }
issuer@cluster 0, cta 0 {
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  fence.proxy.async;
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
writer@cluster 0, cta 1 {
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  st.shared::cluster.u32 [buf@0], 7;
  fence.proxy.async;
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}
expect clean
""",
    ),
    Entry(
        code="RACE006",
        name="generic-read-overtaken-by-async-write",
        kind="race",
        goes_on=True,
        permissive="review",
        message="{second} may overwrite the bytes before {first} has read them: no proxy fence separates the two",
        explanation="""\
A generic read that comes before a bulk load into the same bytes still needs a proxy fence between them: the
asynchronous engine may write while the load waits in the generic pipe. A wait on an empty-barrier orders the
two in time only. Rings that refill a slot by a bulk copy show this on hardware. The texts name the case in one
example only, so the profile permissive lowers it to review.""",
        section="PTX ISA 9.0 sections 8.6, 8.9.5 and 9.7.13.17",
        remedy=(
            "Readers execute fence.proxy.async.shared::cta after their last read and before they hand the bytes back."
        ),
        bad="""\
PTX refill-without-proxy-fence
{
  .global .align 16 .b8 src[16];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  ld.shared.u32 r0, [buf];
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect race
""",
        good="""\
PTX refill-with-proxy-fence
{
  .global .align 16 .b8 src[16];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  ld.shared.u32 r0, [buf];
  fence.proxy.async.shared::cta;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="RACE007",
        name="cp-async-data-through-async-proxy",
        kind="race",
        goes_on=True,
        level="review",
        message="{first} writes through the generic proxy; no proxy fence makes it visible to {second}",
        explanation="""\
cp.async is asynchronous, but it works through the generic proxy. Its data therefore need a wait and a
fence.proxy.async before a bulk store, a tensor store or wgmma reads them. No hardware was seen to go wrong
without the fence, and shipped kernels leave it out; so it is for review, and an error under the profile strict.""",
        section="PTX ISA 9.2 section 9.7.9.25.3.1",
        remedy=(
            "Execute fence.proxy.async after the wait for the cp.async and before the operation that reads its data."
        ),
        bad="""\
PTX cp-async-then-bulk-store
{
  .global .align 16 .b8 src[16];
  .global .align 16 .b8 dst[16];
  .shared .align 16 .b8 buf[16];
}
P@cta 0 {
  cp.async.cg.shared.global [buf], [src], 16;
  cp.async.wait_all;
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect race
""",
        good="""\
PTX cp-async-fence-bulk-store
{
  .global .align 16 .b8 src[16];
  .global .align 16 .b8 dst[16];
  .shared .align 16 .b8 buf[16];
}
P@cta 0 {
  cp.async.cg.shared.global [buf], [src], 16;
  cp.async.wait_all;
  fence.proxy.async.shared::cta;
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
expect clean
""",
    ),
    Entry(
        code="RACE008",
        name="async-to-async-across-ctas",
        kind="race",
        goes_on=True,
        level="review",
        message="{first} and {second} are asynchronous operations of different CTAs with no proxy fence between them",
        explanation="""\
Accesses through one proxy need no proxy fence as long as both belong to one CTA; an access to shared memory
counts for the CTA that owns the bytes. From CTA to CTA no rule carries an asynchronous write over to another
CTA's asynchronous read. Nothing was seen to go wrong on hardware, so this is advice: it never makes a check
fail.""",
        section="PTX ISA 9.0 section 8.9.5",
        remedy="Execute fence.proxy.async after the acquire, before the second operation is issued.",
        bad="""\
PTX bulk-store-flag-bulk-load
{
  .global .align 16 .b8 g[16];
  .global .u32 flag;
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
producer@cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [g], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  st.release.gpu.global.u32 [flag], 1;
}
consumer@cta 1 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  await ld.acquire.gpu.global.u32 r0, [flag] == 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [g], 16, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect race
""",
        good="""\
PTX bulk-store-fences-bulk-load
{
  .global .align 16 .b8 g[16];
  .global .u32 flag;
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 bar;
}
producer@cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [g], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  fence.proxy.async.global;
  st.release.gpu.global.u32 [flag], 1;
}
consumer@cta 1 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  await ld.acquire.gpu.global.u32 r0, [flag] == 1;
  fence.proxy.async.global;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [g], 16, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="RACE009",
        name="tensor-map-written-without-tensormap-fences",
        kind="race",
        goes_on=True,
        message=(
            "{first} writes the tensor map that {second} reads, without a tensormap release and acquire between them"
        ),
        explanation="""\
Tensor copies read their map through the tensormap proxy. A write of the map through the generic proxy (a store,
tensormap.replace) reaches it only through two halves: fence.proxy.tensormap::generic.release, or
tensormap.cp_fenceproxy, after the write, and fence.proxy.tensormap::generic.acquire on the 128 bytes before the
copy, with scopes that include both threads. The start of a kernel acquires nothing for the tensormap proxy.""",
        section="PTX ISA 9.0 sections 8.6 and 9.7.13.4",
        remedy=(
            "Put the tensormap release after the write and the tensormap acquire before the first copy "
            "that uses the map."
        ),
        bad="""\
PTX map-replaced-without-fences
{
  .global .align 128 .b8 one[128];
  .global .align 128 .b8 two[128];
  .global .tensormap tm = { global_address = one, elemtype = u8, rank = 2, global_dim = {16, 8}, global_stride = {16},
    box_dim = {16, 8}, element_stride = {1, 1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .b8 buf[128];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  tensormap.replace.tile.global_address.global.b1024.b64 [tm], two;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buf], [tm, {0, 0}], [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect race
""",
        good="""\
PTX map-replaced-with-fences
{
  .global .align 128 .b8 one[128];
  .global .align 128 .b8 two[128];
  .global .tensormap tm = { global_address = one, elemtype = u8, rank = 2, global_dim = {16, 8}, global_stride = {16},
    box_dim = {16, 8}, element_stride = {1, 1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .b8 buf[128];
  .shared .align 8 .b64 bar;
}
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  tensormap.replace.tile.global_address.global.b1024.b64 [tm], two;
  fence.proxy.tensormap::generic.release.gpu;
  fence.proxy.tensormap::generic.acquire.gpu [tm], 128;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buf], [tm, {0, 0}], [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
expect clean
""",
    ),
    Entry(
        code="RACE010",
        name="scope-too-narrow",
        kind="race",
        goes_on=True,
        message="the release and the acquire between {first} and {second} have scopes that do not include each other",
        explanation="""\
A release synchronizes with an acquire only if the two are morally strong, and for that each scope must include
the other's thread. A .cta release that another CTA acquires orders nothing, although its value arrives. The
defaults of mbarrier.arrive and of the mbarrier waits are .cta, which is too narrow for an arrival from another
CTA of the cluster.""",
        section="PTX ISA 9.0 sections 8.5, 8.7 and 8.9.4",
        remedy="Widen the scopes (.cluster within a cluster, .gpu within a device): those of the release and the "
        "acquire, and those of the accesses by which the one observes the other.",
        bad="""\
PTX cta-fences-across-ctas
{ .global .u32 data; .global .u32 flag; }
producer@cta 0 {
  st.global.u32 [data], 1;
  fence.acq_rel.cta;
  st.relaxed.gpu.global.u32 [flag], 1;
}
consumer@cta 1 {
  await ld.relaxed.gpu.global.u32 r0, [flag] == 1;
  fence.acq_rel.cta;
  ld.global.u32 r1, [data];
}
expect race
""",
        good="""\
PTX gpu-fences-across-ctas
{ .global .u32 data; .global .u32 flag; }
producer@cta 0 {
  st.global.u32 [data], 1;
  fence.acq_rel.gpu;
  st.relaxed.gpu.global.u32 [flag], 1;
}
consumer@cta 1 {
  await ld.relaxed.gpu.global.u32 r0, [flag] == 1;
  fence.acq_rel.gpu;
  ld.global.u32 r1, [data];
}
expect clean
""",
    ),
)
