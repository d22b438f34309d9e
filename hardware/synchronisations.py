"""The fences, barriers, waits and orders whose cycles are measured, and the PTX module that measures one.

A case is timed on some warps of a CTA: a round reads the clock, executes the case's instructions so many times, and
reads the clock again. What the base costs in the same place (nothing, or the same access without an order) is
subtracted by ``hardware.costs``. Under load, a store to global memory and one to shared memory stand in front of every
execution, and three of four clusters do nothing but store until the others have done.
"""

from __future__ import annotations

from dataclasses import dataclass

ROUNDS = 72
"""Rounds whose cycles are kept, one by one."""
WORK = 64 << 20
"""Bytes that are stored to under load."""
LOADERS = 8
"""Warps of a CTA that stores."""

BULK = (
    "cp.async.bulk.global.shared::cta.bulk_group [%far], [%tile], 1024;",
    "cp.async.bulk.commit_group;",
)
COPY = ("cp.async.ca.shared.global [%tile], [%far], 16;",)
MAP = "fence.proxy.tensormap::generic"


@dataclass(frozen=True, slots=True)
class Case:
    """What is timed, and what stands untimed around it in each round; ``key`` is its name in a table of costs."""

    name: str
    body: tuple[str, ...]
    key: str = ""
    base: tuple[str, ...] = ()
    """What is timed in its place for the subtraction."""
    warps: int = 1
    one_lane: bool = False
    times: int = 8
    """How often a round executes it."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    awaited: bool = False
    """Whether what stands around it does not end without it: the base then executes it untimed."""

    @property
    def cluster(self) -> int:
        """The CTAs of a cluster."""
        return 2 if any("barrier.cluster" in line for line in (*self.body, *self.after)) else 1

    @property
    def stands_for(self) -> str:
        """The beginning of the instructions that it stands for in a table of costs, if any."""
        return self.key or (self.name if not self.base and " " not in self.name else "")


def _plain(name: str, *body: str) -> Case:
    return Case(name, body or (f"{name};",))


def _lane(name: str, *body: str, **more: object) -> Case:
    return Case(name, body, one_lane=True, **more)  # type: ignore[arg-type]


def _once(name: str, body: str, before: tuple[str, ...] = (), after: tuple[str, ...] = (), **more: object) -> Case:
    return Case(name, (body,), times=1, before=before, after=after, **more)  # type: ignore[arg-type]


def _orders() -> list[Case]:
    """Acquire and release against the relaxed access of the same scope."""
    cases = []
    for scope in ("cta", "cluster", "gpu", "sys"):
        load, store = f".{scope}.global.u32 %v, [%near];", f".{scope}.global.u32 [%near], %k;"
        add = f".{scope}.global.add.u32 [%near], 1;"
        fetch = f".{scope}.global.add.u32 %v, [%near], 1;"
        used = "add.u32 %sum, %sum, %v;"
        keyed = {"ld.acquire": load, "atom.acquire": fetch, "atom.release": fetch, "atom.acq_rel": fetch}
        for name, rest in keyed.items():
            base = (name.split(".")[0] + ".relaxed" + rest, used)
            cases.append(Case(f"{name}.{scope} - relaxed", (name + rest, used), f"{name}.{scope}", base))
        for name, rest in (("st.release", store), ("red.release", add)):
            plain = (name.split(".")[0] + ".relaxed" + rest,)
            cases.append(Case(f"{name}.{scope} - relaxed", (name + rest,), f"{name}.{scope}", plain))
    cases += [
        _plain(
            f"atom.{order}.gpu, whole", f"atom.{order}.gpu.global.add.u32 %v, [%near], 1;", "add.u32 %sum, %sum, %v;"
        )
        for order in ("relaxed", "acq_rel")
    ]
    return cases


def _barriers() -> list[Case]:
    """Barriers of warps and CTAs, by their number of warps, and of clusters."""
    cases = [_plain("bar.warp.sync", "bar.warp.sync 0xffffffff;")]
    for warps in (1, 2, 4, 8, 16):
        for name in ("bar.sync", "barrier.sync"):
            shown = name if warps == 4 else f"{name}, {warps} warps"
            cases.append(Case(shown, (f"{name} 1, {32 * warps};",), warps=warps))
    meet = ("@!%first bar.sync 1, 64;", "bar.sync 2, 64;")
    cases += [
        _once(name, f"@%first {name} 1, 64;", after=meet, warps=2, awaited=True)
        for name in ("bar.arrive", "barrier.arrive")
    ]
    arrive, relaxed, wait = "barrier.cluster.arrive;", "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"
    late = (arrive, "nanosleep.u32 4000;")
    cases += [
        _once("barrier.cluster.arrive", arrive, after=(wait,), warps=4, awaited=True),
        _once("barrier.cluster.arrive.relaxed", relaxed, after=(wait,), warps=4, awaited=True),
        _once("barrier.cluster.wait", wait, before=late, warps=4, awaited=True),
        Case("barrier.cluster.arrive + wait, 4 warps", (arrive, wait), warps=4),
        Case("barrier.cluster.arrive.relaxed + wait, 4 warps", (relaxed, wait), warps=4),
    ]
    return cases


def _mbarriers() -> list[Case]:
    """What one lane does to an mbarrier of one arrival, whose phase 0 or 1 is complete."""
    done = "mbarrier.arrive.shared::cta.b64 _, [%fresh];"
    fresh = ("@%once mbarrier.init.shared::cta.b64 [%fresh], 1;", f"@%once {done}")
    seen = "@%done add.u32 %sum, %sum, 1;"
    waits = {
        name: f"mbarrier.{name}.shared::cta.b64 %done, [%fresh], 0;"
        for name in ("test_wait.parity", "try_wait.parity", "try_wait.parity.acquire.cluster")
    }
    init, inval = "mbarrier.init.shared::cta.b64 [%fresh], 1;", "mbarrier.inval.shared::cta.b64 [%fresh];"
    return [
        _lane("mbarrier.init", init),
        _lane("mbarrier.inval after init", init, inval, base=(init,), key="mbarrier.inval"),
        _lane("mbarrier.arrive", "mbarrier.arrive.shared::cta.b64 _, [%bar];"),
        _lane("mbarrier.arrive.relaxed.cta", "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%bar];"),
        _lane(
            "mbarrier.arrive, cluster", "mbarrier.arrive.release.cluster.shared::cta.b64 _, [%bar];",
            key="mbarrier.arrive.release.cluster",
        ),
        _lane(
            "mbarrier.arrive, own CTA by mapa", "mapa.shared::cluster.u32 %there, %bar, %rank;",
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%there];",
        ),
        _lane("mbarrier.arrive.expect_tx", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 0;"),
        # once, for ptxas makes one of several in a row
        _once("mbarrier.expect_tx", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], 16;", one_lane=True),
        _lane("mbarrier.test_wait", waits["test_wait.parity"], seen, before=fresh),
        _lane("mbarrier.try_wait", waits["try_wait.parity"], seen, before=fresh),
        _lane("mbarrier.try_wait, cluster", waits["try_wait.parity.acquire.cluster"], seen, before=fresh),
        _once("await", "AWAIT: mbarrier.try_wait.parity.shared::cta.b64 %done, [%fresh], 0;\n\t@!%done bra AWAIT;",
              before=fresh, one_lane=True),
        _once("mapa of a shared address", "mapa.shared::cluster.u32 %there, %bar, %rank;", one_lane=True),
    ]  # fmt: skip


def _copies() -> list[Case]:
    """Waits for copies, with nothing pending and with one copy on its way."""
    cases = [
        _lane("cp.async.commit_group", "cp.async.commit_group;"),
        _lane("cp.async.bulk.commit_group", "cp.async.bulk.commit_group;"),
    ]
    for name in ("cp.async.wait_group", "cp.async.wait_all"):
        line = f"{name} 0;" if name.endswith("group") else f"{name};"
        cases.append(_lane(f"{name}, none pending", line))
        cases.append(_once(name, line, before=(*COPY, "cp.async.commit_group;"), one_lane=True))
    for name in ("cp.async.bulk.wait_group", "cp.async.bulk.wait_group.read"):
        cases.append(_lane(f"{name}, none pending", f"{name} 0;"))
        cases.append(_once(name, f"{name} 0;", before=BULK, one_lane=True))
    # with nothing pending: a clock that is read in front of one while an mma is pending is read behind it
    for name, rest in (("fence", ""), ("commit_group", ""), ("wait_group", " 0")):
        cases.append(Case(f"wgmma.{name}", (f"wgmma.{name}.sync.aligned{rest};",), warps=4))
    return cases


CASES = (
    *(_plain(f"fence.{order}.{scope}") for order in ("acq_rel", "sc") for scope in ("cta", "cluster", "gpu", "sys")),
    *(_plain(f"membar.{level}") for level in ("cta", "gl", "sys")),
    *(_plain(f"fence.proxy.async{space}") for space in ("", ".global", ".shared::cta", ".shared::cluster")),
    _plain("fence.proxy.alias"),
    Case("fence.proxy.tensormap, acquire", (f"{MAP}.acquire.gpu [%near], 128;",), f"{MAP}.acquire"),
    Case("fence.proxy.tensormap, release", (f"{MAP}.release.gpu;",), "fence.proxy.tensormap"),
    Case("fence.mbarrier_init", ("fence.mbarrier_init.release.cluster;",)),
    *_barriers(),
    *_mbarriers(),
    *_copies(),
    *_orders(),
)


def write_module(case: Case, loaded: bool, base: bool = False) -> str:
    """The kernel ``run(cycles, work, done, rounds)`` that times a case, or its base."""
    timed = case.base if base else case.body
    after = (*case.body, *case.after) if base and case.awaited else case.after
    store = [] if not loaded else ["st.global.u32 [%mine + {at}], %k;", "st.shared.u32 [%own], %k;"]
    body = []
    for time in range(case.times):
        body += [line.format(at=time << 21) for line in store]
        body += timed
    lines = [
        ".version 8.6", ".target sm_90a", ".address_size 64",
        f".visible .entry run({', '.join(f'.param .u64 p{k}' for k in range(4))})",
        f".explicitcluster .reqnctapercluster {case.cluster}, 1, 1", "{",
        ".reg .pred %p, %q, %first, %once, %done;",
        ".reg .b32 %k, %v, %sum, %t, %i, %lane, %warp, %rank, %there, %slot, %bar, %fresh, %tile, %own, %n, %rounds;",
        ".reg .b64 %cycles, %work, %flag, %at, %mine, %near, %far, %c0, %c1, %w;",
        ".shared .align 1024 .b8 tile[8192];", f".shared .align 8 .b64 kept[{ROUNDS}];",
        ".shared .align 8 .b64 bar;", ".shared .align 8 .b64 fresh;", ".shared .align 16 .b8 own[4096];",
        "ld.param.u64 %cycles, [p0];", "ld.param.u64 %work, [p1];", "ld.param.u64 %flag, [p2];",
        "ld.param.u32 %rounds, [p3];",
        "mov.u32 %t, %tid.x;", "and.b32 %lane, %t, 31;", "shr.u32 %warp, %t, 5;", "mov.u32 %rank, %cluster_ctarank;",
        "mov.u32 %tile, tile;", "mov.u32 %bar, bar;", "mov.u32 %fresh, fresh;", "mov.u32 %slot, kept;",
        "mov.u32 %own, own;", "mad.lo.u32 %own, %t, 4, %own;", "mov.u32 %sum, 0;",
        "mov.u32 %i, %ctaid.x;", "mov.u32 %n, %ntid.x;", "mad.lo.u32 %n, %i, %n, %t;", "mul.wide.u32 %at, %n, 4;",
        "add.u64 %mine, %work, %at;", f"add.u64 %near, %work, {WORK};", "mul.wide.u32 %at, %i, 8192;",
        "add.u64 %near, %near, %at;", "add.u64 %far, %near, 4096;",
        "setp.ne.u32 %p, %t, 0;", "@!%p mbarrier.init.shared::cta.b64 [%bar], 1;", "bar.sync 0;",
        # the first of four clusters measures, the others load
        f"div.u32 %v, %i, {case.cluster};", "and.b32 %v, %v, 3;", "setp.ne.u32 %p, %v, 0;", "@%p bra LOAD;",
        f"setp.ge.u32 %p, %warp, {case.warps};", "@%p bra END;",
    ]  # fmt: skip
    if case.one_lane:
        lines += ["setp.ne.u32 %p, %lane, 0;", "@%p bra END;"]
    lines += [
        "setp.eq.u32 %first, %warp, 0;", "mov.u32 %k, 0;", "ROUND:", '.pragma "nounroll";', "setp.eq.u32 %once, %k, 0;",
        *case.before, "mov.u64 %c0, %clock64;", *body, "mov.u64 %c1, %clock64;", *after,
        "sub.u64 %c1, %c1, %c0;", "setp.eq.u32 %p, %t, 0;", "@%p st.shared.u64 [%slot], %c1;",
        "add.u32 %slot, %slot, 8;", "add.u32 %k, %k, 1;", "setp.lt.u32 %p, %k, %rounds;", "@%p bra ROUND;",
        "setp.ne.u32 %p, %t, 0;", "@%p bra END;", "st.shared.u32 [%own], %sum;",
        "mov.u32 %slot, kept;", f"mul.wide.u32 %at, %i, {8 * ROUNDS};", "add.u64 %at, %cycles, %at;", "mov.u32 %k, 0;",
        "KEEP:", '.pragma "nounroll";', "ld.shared.u64 %w, [%slot];", "st.global.u64 [%at], %w;",
        "add.u32 %slot, %slot, 8;",
        "add.u64 %at, %at, 8;", "add.u32 %k, %k, 1;", "setp.lt.u32 %p, %k, %rounds;", "@%p bra KEEP;",
        "red.release.gpu.global.add.u32 [%flag], 1;", "bra END;",
        # 65,536 rounds at the most, if those that measure have not started
        "LOAD:", "mov.u32 %k, 0;", "add.u32 %v, %n, 0;", "mov.u32 %i, %nctaid.x;",
        f"div.u32 %i, %i, {4 * case.cluster};",
        f"mul.lo.u32 %i, %i, {case.cluster};", "MORE:", "mad.lo.u32 %v, %v, 1664525, 1013904223;",
        f"and.b32 %there, %v, {WORK - 16};", "cvt.u64.u32 %at, %there;", "add.u64 %at, %work, %at;",
        "st.global.v4.u32 [%at], {%k, %k, %k, %k};", "st.shared.u32 [%own], %k;", "add.u32 %k, %k, 1;",
        "and.b32 %there, %k, 15;", "setp.ne.u32 %p, %there, 0;", "@%p bra MORE;",
        "ld.relaxed.gpu.global.u32 %there, [%flag];", "setp.ge.u32 %p, %there, %i;", "@%p bra END;",
        "setp.lt.u32 %p, %k, 65536;", "@%p bra MORE;", "END:", "ret;", "}",
    ]  # fmt: skip
    return "\n".join([*lines, ""])
