"""Small kernels, one for each way to synchronise, each right and with bugs; two threads or two CTAs of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 src, .param .u64 .ptr .global .align 16 dst)
{
	.reg .pred %p<8>;
	.reg .b32 %r<16>;
	.reg .b64 %rd<8>;
	.shared .align 128 .b8 tile[128];
	.shared .align 8 .b64 bar;
	.shared .align 8 .b64 free;
	ld.param.u64 %rd1, [src];
	ld.param.u64 %rd2, [dst];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, tile;
	mov.u32 %r3, bar;
	mov.u32 %r4, free;
	mov.u32 %r5, %cluster_ctarank;
	setp.ne.u32 %p1, %r1, 0;
	setp.ne.u32 %p2, %r5, 0;
"""
ZEROS = {"buffer": 16, "init": {"hex": "00" * 16}}


@dataclass(frozen=True, slots=True)
class Idiom:
    """A body, and per bug what is replaced by what, and the codes of the errors that it makes."""

    name: str
    body: str
    bugs: dict[str, tuple[str, str, str]]
    threads: int = 2
    ctas: int = 1
    words: bool = False
    """Whether both buffers hold words that begin as zeros, by which threads talk to each other."""

    @property
    def launch(self) -> dict[str, Any]:
        """In the form of a launch file."""
        buffer = ZEROS if self.words else {"buffer": 64}
        shape = {"grid": [self.ctas], "block": [self.threads], "cluster": [self.ctas]}
        return {**shape, "params": {"src": buffer, "dst": buffer}}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A module with the codes of its errors."""

    name: str
    text: str
    launch: dict[str, Any] = field(repr=False)
    codes: frozenset[str]


def kernels() -> Iterator[Kernel]:
    """Every idiom, followed by its bugs."""
    for idiom in IDIOMS:
        text = HEAD + idiom.body.strip("\n") + "\n\tret;\n}\n"
        yield Kernel(idiom.name, text, idiom.launch, frozenset())
        for bug, (old, new, codes) in idiom.bugs.items():
            assert old in text, f"{idiom.name}: {old}"
            changed = text.replace(old, new)
            yield Kernel(f"{idiom.name}, {bug}", changed, idiom.launch, frozenset(codes.split()))


INIT = """
	@%p1 bra BEGUN;
	mbarrier.init.shared::cta.b64 [%r3], 1;
	mbarrier.init.shared::cta.b64 [%r4], 1;
	fence.mbarrier_init.release.cluster;
BEGUN:
	bar.sync 0;
"""
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 32, [%r3];"
WAIT = """
{0}:
	mbarrier.try_wait.parity.shared::cta.b64 %p3, [{1}], {2};
	@!%p3 bra {0};
"""


def wait(label: str, where: str, parity: int) -> str:
    """A loop around ``try_wait``."""
    return WAIT.format(label, where, parity)


BEGIN = "	setp.ne.u32 %p2, %r5, 0;\n	barrier.cluster.arrive;\n	barrier.cluster.wait;\n"
BOTH = "	barrier.cluster.arrive;\n	barrier.cluster.wait;\n"

IDIOMS = (
    Idiom(
        "barrier",
        """
	@!%p1 st.shared.u32 [%r2], 5;
	bar.sync 0;
	@%p1 ld.shared.u32 %r6, [%r2];
""",
        {
            "without": ("bar.sync 0;", "", "RACE001"),
            "read before": (
                "bar.sync 0;\n\t@%p1 ld.shared.u32 %r6, [%r2];",
                "@%p1 ld.shared.u32 %r6, [%r2];\n\tbar.sync 0;",
                "RACE001",
            ),
        },
    ),
    Idiom(
        "warp barrier",
        """
	@!%p1 st.shared.u32 [%r2], 5;
	bar.warp.sync 3;
	@%p1 ld.shared.u32 %r6, [%r2];
""",
        {"without": ("bar.warp.sync 3;", "", "RACE001")},
    ),
    Idiom(
        "flag",
        """
	@%p1 bra READ;
	st.weak.global.u32 [%rd1], 5;
	st.release.gpu.global.u32 [%rd2], 1;
	ret;
READ:
	ld.acquire.gpu.global.u32 %r6, [%rd2];
	setp.eq.u32 %p3, %r6, 0;
	@%p3 bra READ;
	ld.weak.global.u32 %r7, [%rd1];
""",
        {
            "relaxed store": ("st.release.gpu", "st.relaxed.gpu", "RACE001"),
            "relaxed load": ("ld.acquire.gpu", "ld.relaxed.gpu", "RACE001"),
            "never set": ("st.release.gpu.global.u32 [%rd2], 1;", "", "DEAD004"),
        },
        words=True,
    ),
    Idiom(
        "flag by fences",
        """
	@%p1 bra READ;
	st.weak.global.u32 [%rd1], 5;
	fence.acq_rel.gpu;
	st.relaxed.gpu.global.u32 [%rd2], 1;
	ret;
READ:
	ld.relaxed.gpu.global.u32 %r6, [%rd2];
	setp.eq.u32 %p3, %r6, 0;
	@%p3 bra READ;
	membar.gl;
	ld.weak.global.u32 %r7, [%rd1];
""",
        {"no fence": ("membar.gl;", "", "RACE001"), "no first fence": ("fence.acq_rel.gpu;", "", "RACE001")},
        words=True,
    ),
    Idiom(
        "flag of another CTA",
        """
	@%p2 bra READ;
	st.weak.global.u32 [%rd1], 5;
	st.release.cluster.global.u32 [%rd2], 1;
	ret;
READ:
	ld.acquire.cluster.global.u32 %r6, [%rd2];
	setp.eq.u32 %p3, %r6, 0;
	@%p3 bra READ;
	ld.weak.global.u32 %r7, [%rd1];
""",
        {
            "narrow store": ("st.release.cluster", "st.release.cta", "RACE010"),
            "narrow load": ("ld.acquire.cluster", "ld.acquire.cta", "RACE010"),
        },
        threads=1,
        ctas=2,
        words=True,
    ),
    Idiom(
        "counter",
        """
	red.relaxed.gpu.global.add.u32 [%rd1], 1;
""",
        {
            "weak": ("red.relaxed.gpu.global.add.u32 [%rd1], 1;", "st.global.u32 [%rd1], %r5;", "RACE001"),
            "narrow": ("red.relaxed.gpu", "red.relaxed.cta", "RACE001"),
        },
        threads=1,
        ctas=2,
        words=True,
    ),
    Idiom(
        "mbarrier",
        INIT
        + """
	@%p1 bra READ;
	st.shared.u32 [%r2], 5;
	mbarrier.arrive.release.cta.shared::cta.b64 _, [%r3];
	ret;
READ:
"""
        + wait("HERE", "%r3", 0)
        + """
	ld.shared.u32 %r6, [%r2];
""",
        {
            "parity": ("[%r3], 0;", "[%r3], 1;", "DEAD003 RACE001"),
            "count": ("mbarrier.init.shared::cta.b64 [%r3], 1;", "mbarrier.init.shared::cta.b64 [%r3], 2;", "DEAD003"),
            "other barrier": ("_, [%r3];", "_, [%r4];", "DEAD003"),
            "relaxed": ("mbarrier.arrive.release.cta", "mbarrier.arrive.relaxed.cta", "RACE001"),
            "not initialised before": ("bar.sync 0;", "", "UB201"),
        },
    ),
    Idiom(
        "ring",
        INIT
        + """
	@%p1 bra READ;
	st.shared.u32 [%r2], 5;
	mbarrier.arrive.shared::cta.b64 _, [%r3];
"""
        + wait("FREE", "%r4", 0)
        + """
	st.shared.u32 [%r2], 6;
	mbarrier.arrive.shared::cta.b64 _, [%r3];
	ret;
READ:
"""
        + wait("FIRST", "%r3", 0)
        + """
	ld.shared.u32 %r6, [%r2];
	mbarrier.arrive.shared::cta.b64 _, [%r4];
"""
        + wait("SECOND", "%r3", 1)
        + """
	ld.shared.u32 %r7, [%r2];
""",
        {
            "not free": ("@!%p3 bra FREE;", "", "DEAD003 RACE001"),
            "freed early": (
                "ld.shared.u32 %r6, [%r2];\n\tmbarrier.arrive.shared::cta.b64 _, [%r4];",
                "mbarrier.arrive.shared::cta.b64 _, [%r4];\n\tld.shared.u32 %r6, [%r2];",
                "RACE001",
            ),
            "same parity": ("[%r3], 1;\n\t@!%p3 bra SECOND", "[%r3], 0;\n\t@!%p3 bra SECOND", "DEAD003 RACE001"),
        },
    ),
    Idiom(
        "bulk load",
        INIT
        + f"""
	@%p1 bra READ;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 32;
	{LOAD}
READ:
"""
        + wait("FULL", "%r3", 0)
        + """
	ld.shared.u32 %r6, [%r2];
""",
        {
            "more is expected": ("_, [%r3], 32;", "_, [%r3], 48;", "DEAD003"),
            "the phase before": ("[%r3], 0;", "[%r3], 1;", "DEAD003 RACE003"),
            "not awaited": ("@!%p3 bra FULL;", "", "RACE003"),
        },
    ),
    Idiom(
        "bulk load, bytes apart",
        INIT
        + f"""
	@%p1 bra READ;
	mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 32;
	{LOAD}
	mbarrier.arrive.shared::cta.b64 _, [%r3];
READ:
"""
        + wait("FULL", "%r3", 0)
        + """
	ld.shared.u32 %r6, [%r2];
""",
        {"no arrival": ("mbarrier.arrive.shared::cta.b64 _, [%r3];", "", "DEAD003")},
    ),
    Idiom(
        "refill",
        INIT
        + f"""
	@%p1 ret;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 32;
	{LOAD}
"""
        + wait("FIRST", "%r3", 0)
        + f"""
	ld.shared.u32 %r6, [%r2];
	fence.proxy.async.shared::cta;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 32;
	{LOAD}
"""
        + wait("SECOND", "%r3", 1)
        + """
	ld.shared.u32 %r7, [%r2];
""",
        {"no proxy fence": ("fence.proxy.async.shared::cta;", "", "RACE006")},
    ),
    Idiom(
        "bulk store",
        """
	mad.lo.u32 %r6, %r1, 16, %r2;
	st.shared.u32 [%r6], %r1;
	fence.proxy.async.shared::cta;
	bar.sync 0;
	@%p1 ret;
	cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 32;
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group.read 0;
	st.shared.u32 [%r2], 7;
""",
        {
            "no proxy fence": ("fence.proxy.async.shared::cta;", "", "RACE004"),
            "fence behind": (
                "fence.proxy.async.shared::cta;\n\tbar.sync 0;\n\t@%p1 ret;",
                "bar.sync 0;\n\t@%p1 ret;\n\tfence.proxy.async.shared::cta;",
                "",
            ),
            "no wait": ("cp.async.bulk.wait_group.read 0;", "", "RACE003"),
            "one group may be open": ("wait_group.read 0;", "wait_group.read 1;", "RACE003"),
            "no commit": ("cp.async.bulk.commit_group;", "", "RACE003"),
        },
    ),
    Idiom(
        "bulk reduction",
        """
	@%p1 ret;
	st.shared.u32 [%r2], 1;
	fence.proxy.async;
	cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r2], 16;
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0;
	fence.proxy.async;
	ld.global.u32 %r6, [%rd1];
""",
        {
            "no wait": ("cp.async.bulk.wait_group 0;", "", "RACE003"),
            "only read": ("cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;", "RACE003"),
            "no proxy fence": ("fence.proxy.async;\n\tcp.red", "cp.red", "RACE004"),
        },
    ),
    Idiom(
        "cp.async",
        """
	@!%p1 cp.async.ca.shared.global [%r2], [%rd1], 16;
	@!%p1 cp.async.commit_group;
	@!%p1 cp.async.wait_group 0;
	bar.sync 0;
	ld.shared.u32 %r6, [%r2];
""",
        {
            "no wait": ("@!%p1 cp.async.wait_group 0;", "", "RACE003"),
            "wait behind": (
                "@!%p1 cp.async.wait_group 0;\n\tbar.sync 0;",
                "bar.sync 0;\n\t@!%p1 cp.async.wait_group 0;",
                "RACE003",
            ),
            "wait by another": ("@!%p1 cp.async.wait_group 0;", "@%p1 cp.async.wait_group 0;", "RACE003"),
            "one may be open": ("cp.async.wait_group 0;", "cp.async.wait_group 1;", "RACE003"),
        },
    ),
    Idiom(
        "two groups",
        """
	@%p1 ret;
	cp.async.ca.shared.global [%r2], [%rd1], 16;
	cp.async.commit_group;
	cp.async.ca.shared.global [%r2+16], [%rd1+16], 16;
	cp.async.commit_group;
	cp.async.wait_group 1;
	ld.shared.u32 %r6, [%r2];
	cp.async.wait_all;
	ld.shared.u32 %r7, [%r2+16];
""",
        {
            "the later one": ("ld.shared.u32 %r6, [%r2];", "ld.shared.u32 %r6, [%r2+16];", "RACE003"),
            "one group": ("[%rd1], 16;\n\tcp.async.commit_group;", "[%rd1], 16;", "RACE003"),
        },
    ),
    Idiom(
        "cp.async to an mbarrier",
        INIT
        + """
	@%p1 bra READ;
	cp.async.ca.shared.global [%r2], [%rd1], 16;
	cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r3];
	ret;
READ:
"""
        + wait("FULL", "%r3", 0)
        + """
	ld.shared.u32 %r6, [%r2];
""",
        {
            "counted on top": ("arrive.noinc.", "arrive.", "DEAD003"),
            "copy behind": (
                "cp.async.ca.shared.global [%r2], [%rd1], 16;\n\tcp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r3];",
                "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r3];\n\tcp.async.ca.shared.global [%r2], [%rd1], 16;",
                "RACE003",
            ),
        },
    ),
    Idiom(
        "shared memory of a peer",
        BOTH
        + """
	mapa.shared::cluster.u32 %r6, %r2, 1;
	@!%p2 st.shared::cluster.u32 [%r6], 5;
"""
        + BOTH
        + """
	@%p2 ld.shared.u32 %r7, [%r2];
""",
        {
            "no wait": ("	barrier.cluster.wait;\n\n	@%p2", "\n	@%p2", "RACE001 UB502"),
            "relaxed": (
                "barrier.cluster.arrive;\n	barrier.cluster.wait;\n\n	@%p2",
                "barrier.cluster.arrive.relaxed;\n	barrier.cluster.wait;\n\n	@%p2",
                "RACE001",
            ),
            "not begun": (BEGIN, BEGIN.replace(BOTH, ""), "UB503"),
        },
        threads=1,
        ctas=2,
    ),
    Idiom(
        "arrival at a peer",
        "	mbarrier.init.shared::cta.b64 [%r3], 1;\n	fence.mbarrier_init.release.cluster;\n"
        + BOTH
        + """
	mapa.shared::cluster.u32 %r6, %r2, 1;
	mapa.shared::cluster.u32 %r7, %r3, 1;
	@%p2 bra READ;
	st.shared::cluster.u32 [%r6], 5;
	mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];
	bra END;
READ:
HERE:
	mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r3], 0;
	@!%p3 bra HERE;
	ld.shared.u32 %r8, [%r2];
END:
"""
        + BOTH,
        {
            "narrow arrival": ("mbarrier.arrive.release.cluster.", "mbarrier.arrive.release.cta.", "RACE010"),
            "parity": ("[%r3], 0;", "[%r3], 1;", "DEAD003 RACE001"),
        },
        threads=1,
        ctas=2,
    ),
    Idiom(
        "st.async",
        "	mbarrier.init.shared::cta.b64 [%r3], 1;\n	fence.mbarrier_init.release.cluster;\n"
        + BOTH
        + """
	mapa.shared::cluster.u32 %r6, %r2, 1;
	mapa.shared::cluster.u32 %r7, %r3, 1;
	@%p2 bra READ;
	st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6], 5, [%r7];
	bra END;
READ:
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 4;
HERE:
	mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r3], 0;
	@!%p3 bra HERE;
	ld.shared.u32 %r8, [%r2];
END:
"""
        + BOTH,
        {
            "more is expected": ("_, [%r3], 4;", "_, [%r3], 8;", "DEAD003"),
            "not awaited": ("@!%p3 bra HERE;", "", "RACE003 UB502"),
        },
        threads=1,
        ctas=2,
    ),
    Idiom(
        "multicast",
        "	mbarrier.init.shared::cta.b64 [%r3], 1;\n	fence.mbarrier_init.release.cluster;\n"
        "	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 32;\n"
        + BOTH
        + """
	@%p2 bra READ;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%rd1], 32, [%r3], 3;
READ:
"""
        + wait("FULL", "%r3", 0)
        + """
	ld.shared.u32 %r8, [%r2];
""",
        {
            "to one": ("[%r3], 3;", "[%r3], 1;", "DEAD003"),
            "not awaited": ("@!%p3 bra FULL;", "", "RACE003 UB502"),
        },
        threads=1,
        ctas=2,
    ),
    Idiom(
        "life of an mbarrier",
        INIT
        + """
	mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 1;
	bar.sync 0;
	@%p1 ret;
	mbarrier.inval.shared::cta.b64 [%r3];
	st.shared.u32 [%r3], 5;
""",
        {
            "ends early": ("bar.sync 0;\n\t@%p1 ret;", "@%p1 ret;", "UB201"),
            "not ended": ("mbarrier.inval.shared::cta.b64 [%r3];", "", "UB202"),
        },
    ),
)
