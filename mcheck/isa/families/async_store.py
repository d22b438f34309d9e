"""``st.async`` and ``red.async`` (PTX ISA 9.7.9.12, 9.7.13.7)."""

from __future__ import annotations

from mcheck.base.records import replace
from mcheck.ir.ops import AsyncStore, Op
from mcheck.isa.families.bulk import CLUSTER_REDUCTIONS, MBARRIER
from mcheck.isa.families.common import SM_90, SM_100, address, pairs, unsupported, values, vector_length
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Rule, Slot, Variant

_CLUSTER = Slot("space", ("shared::cluster",), optional=True, kind="space")
_GLOBAL = Slot("space", ("global",), optional=True, kind="space")
_MMIO = Rule(lambda q: "mmio" not in q or q["scope"] == "sys", "scope", "'.mmio' does not go with '.{scope}'", ".sys")
_A, _MBAR = (
    Arg("a", "mem", space="$space", generic=("global", "shared")),
    Arg("mbar", "mem", space="$space", generic=("global", "shared")),
)
_UNDEFINED = ("destination and mbarrier lie in different CTAs", "address not aligned to the access")


def _store(match: Match) -> Op:
    q, args = match.q, match.args
    with_mbarrier = "mbar" in args
    return AsyncStore(
        address=address(args["a"]),
        srcs=values(args["b"]),
        type=q["type"],
        mbar=address(args["mbar"]) if with_mbarrier else None,
        reduce=q.get("op"),
        sem=q.get("sem", "weak"),
        scope=q.get("scope"),
        space="shared::cluster" if with_mbarrier else "global",
        **match.common,
    )


ST_ASYNC = Family(
    name="st.async",
    kind=Kind.ASYNC_STORE,
    section="9.7.9.12",
    title="asynchronous store",
    ptx="8.1",
    needs=SM_90,
    undefined=_UNDEFINED,
    variants=(
        Variant(
            name="to shared::cluster",
            slots=(
                Slot("sem", ("weak",), optional=True),
                _CLUSTER,
                MBARRIER,
                Slot("vec", ("v2", "v4"), optional=True),
                Slot(
                    "type",
                    ("b32", "b64", "b128", "u32", "u64", "s32", "s64", "f32", "f64"),
                    kind="type",
                    ptx={"b128": "9.2"},
                ),
            ),
            args=(_A, Arg("b", "src", "$type", count=vector_length), _MBAR),
            rules=(
                Rule(lambda q: "vec" not in q or q["type"] != "b128", "vec", "'.b128' takes no vector", "a scalar"),
                Rule(
                    lambda q: q.get("vec") != "v4" or q["type"].endswith("32"),
                    "vec",
                    "'.v4' of '.{type}' is wider than 128 bits",
                    ".v2, or a 32-bit type",
                ),
            ),
            lower=_store,
            completion="mbarrier",
        ),
        Variant(
            name="release to global",
            slots=(
                Slot("mmio", ("mmio",), optional=True),
                Slot("sem", ("release",)),
                Slot("scope", ("gpu", "sys")),
                _GLOBAL,
                Slot(
                    "type",
                    ("b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"),
                    kind="type",
                ),
            ),
            args=(_A, Arg("b", "src", "$type")),
            rules=(_MMIO,),
            lower=_store,
            needs=SM_100,
            ptx="8.7",
        ),
    ),
)

RED_ASYNC = Family(
    name="red.async",
    kind=Kind.ASYNC_REDUCTION,
    section="9.7.13.7",
    title="asynchronous reduction",
    ptx="8.1",
    needs=SM_90,
    undefined=_UNDEFINED,
    variants=(
        Variant(
            name="to shared::cluster",
            slots=(
                Slot("sem", ("relaxed",)),
                Slot("scope", ("cluster",)),
                _CLUSTER,
                MBARRIER,
                Slot("op", tuple(CLUSTER_REDUCTIONS)),
                Slot("type", ("u32", "s32", "u64", "b32"), kind="type"),
            ),
            args=(_A, Arg("b", "src", "$type"), _MBAR),
            rules=(pairs("op", "type", CLUSTER_REDUCTIONS),),
            lower=_store,
            completion="mbarrier",
        ),
        Variant(
            name="release to global",
            slots=(
                Slot("mmio", ("mmio",), optional=True),
                Slot("sem", ("release",)),
                Slot("scope", ("gpu", "sys")),
                _GLOBAL,
                Slot("op", ("add",)),
                Slot("type", ("u32", "s32", "u64", "s64"), kind="type"),
            ),
            args=(_A, Arg("b", "src", "$type")),
            rules=(_MMIO,),
            lower=_store,
            needs=SM_100,
            ptx="8.7",
        ),
        Variant(
            name="without an mbarrier",
            slots=(
                Slot("sem", ("relaxed", "release"), needs={"release": SM_100}),
                Slot("scope", ("gpu", "sys")),
                replace(_GLOBAL, needs={"global": SM_100}),
                Slot("op", tuple(CLUSTER_REDUCTIONS)),
                Slot("type", ("u32", "s32", "u64", "s64", "b32"), kind="type"),
            ),
            args=(_A, Arg("b", "src", "$type")),
            rules=(pairs("op", "type", {**CLUSTER_REDUCTIONS, "add": (*CLUSTER_REDUCTIONS["add"], "s64")}),),
            lower=unsupported,
            ptx="9.5",
        ),
    ),
)

FAMILIES = (ST_ASYNC, RED_ASYNC)
