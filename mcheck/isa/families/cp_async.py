"""Non-bulk asynchronous copies and their groups (PTX ISA 9.7.9.25.3)."""

from __future__ import annotations

from mcheck.ir.ops import Commit, CpAsync, Op, WaitGroup
from mcheck.isa.families.common import CACHE_HINT, CACHE_POLICY, SM_80, ZERO, address, optional_value, value
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Slot, Variant

_DST = Slot("dst_space", ("shared", "shared::cta"), kind="space", ptx={"shared::cta": "7.8"})
_SRC = Slot("src_space", ("global",), kind="space")
_PREFETCH = Slot("prefetch_size", ("L2::64B", "L2::128B", "L2::256B"), optional=True, ptx={"L2::64B": "7.4"})


def _copy(match: Match) -> Op:
    args = match.args
    return CpAsync(
        dst=address(args["dst"]),
        src=address(args["src"]),
        size=value(args["cp-size"]),
        src_size=optional_value(match, "src-size"),
        ignore_src=optional_value(match, "ignore-src"),
        **match.common,
    )


def _variants() -> tuple[Variant, ...]:
    """Both cache operators, each with ``ignore-src`` or with an optional ``src-size``."""
    made = []
    for cache, sizes, besides in (("ca", (4, 8, 16), ""), ("cg", (16,), "; cp.async.ca takes 4, 8 or 16")):
        slots = (Slot("cache", (cache,)), _DST, _SRC, CACHE_HINT, _PREFETCH)
        head = (
            Arg("dst", "mem", space="$dst_space"),
            Arg("src", "mem", space="$src_space"),
            Arg("cp-size", "imm", values=sizes, besides=besides),
        )
        for third in (Arg("ignore-src", "predname"), Arg("src-size", "src", "u32", optional=True)):
            args = (*head, third, CACHE_POLICY)
            made.append(Variant(name=f"{cache}, {third.name}", slots=slots, args=args, lower=_copy))
    return tuple(made)


def _commit(match: Match) -> Op:
    return Commit(family="cp.async", **match.common)


def _wait_group(match: Match) -> Op:
    return WaitGroup(family="cp.async", pending=value(match.args["N"]), **match.common)


def _wait_all(match: Match) -> Op:
    return WaitGroup(family="cp.async", pending=ZERO, commits=True, **match.common)


FAMILIES = (
    Family(
        name="cp.async",
        kind=Kind.ASYNC_COPY,
        section="9.7.9.25.3.1",
        title="asynchronous copy, global to shared::cta",
        ptx="7.0",
        needs=SM_80,
        completion="async-group or mbarrier",
        undefined=(
            "src-size above cp-size",
            "an address outside its state space or not aligned to cp-size",
            "two copies of one group writing the same location",
            "the source modified, or the destination read, before completion",
        ),
        variants=_variants(),
    ),
    Family(
        name="cp.async.commit_group",
        kind=Kind.COPY_GROUP,
        section="9.7.9.25.3.2",
        title="close a group of cp.async",
        ptx="7.0",
        needs=SM_80,
        variants=(Variant(lower=_commit),),
    ),
    Family(
        name="cp.async.wait_group",
        kind=Kind.COPY_GROUP,
        section="9.7.9.25.3.3",
        title="wait until at most N groups are pending",
        ptx="7.0",
        needs=SM_80,
        variants=(Variant(args=(Arg("N", "imm", low=0, high=2**31 - 1),), lower=_wait_group),),
    ),
    Family(
        name="cp.async.wait_all",
        kind=Kind.COPY_GROUP,
        section="9.7.9.25.3.3",
        title="wait for all cp.async of the thread",
        ptx="7.0",
        needs=SM_80,
        variants=(Variant(lower=_wait_all),),
    ),
)
