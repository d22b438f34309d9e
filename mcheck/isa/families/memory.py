"""``ld``, ``st`` and ``st.bulk`` (PTX ISA 9.7.9.8, 9.7.9.11, 9.7.9.13).

``.volatile`` is a relaxed access at system scope with promises about the instruction count, ``.mmio`` likewise
(PTX ISA 8.4.2, 8.4.3); without a qualifier the access is weak.
"""

from __future__ import annotations

from mcheck.ir.ops import Fill, Load, Op, Store
from mcheck.isa.families.common import (
    CACHE_HINT,
    CACHE_POLICY,
    SM_90,
    SM_100,
    address,
    registers,
    scope_slot,
    shared_space,
    unsupported,
    value,
    values,
    vector_length,
)
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Qualifiers, Requirement, Rule, Slot, Variant

TYPES = ("b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64")
_TYPE = Slot("type", TYPES, kind="type", needs={"b128": ("sm_70",)}, ptx={"b128": "8.3"})
_VEC = Slot("vec", ("v2", "v4", "v8"), optional=True, ptx={"v8": "8.8"})

_LD_SPACES = (
    "const", "global", "local", "param", "param::entry", "shared", "shared::cta", "shared::cluster",
)  # fmt: skip
_ST_SPACES = ("global", "local", "param", "shared", "shared::cta", "shared::cluster")
_STRONG_SPACES = ("global", "shared", "shared::cta", "shared::cluster")


def _space(spaces: tuple[str, ...]) -> Slot:
    return Slot(
        "space", spaces, optional=True, kind="space", needs={"shared::cluster": SM_90}, ptx={"shared::cluster": "7.8"}
    )


_EVICT1 = Slot(
    "L1_eviction",
    ("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"),
    optional=True,
    ptx={"L1::evict_normal": "7.4"},
)
_EVICT2 = Slot(
    "L2_eviction",
    ("L2::evict_normal", "L2::evict_first", "L2::evict_last"),
    optional=True,
    ptx={"L2::evict_normal": "8.8"},
)
_PREFETCH = Slot("prefetch_size", ("L2::64B", "L2::128B", "L2::256B"), optional=True, ptx={"L2::64B": "7.4"})
_LD_COP = Slot("cache_operator", ("ca", "cg", "cs", "lu", "cv"))
_ST_COP = Slot("cache_operator", ("wb", "cg", "cs", "wt"))


def _bits(q: Qualifiers) -> int:
    return int(q["type"][1:]) * (vector_length(q) or 1)


_WIDE = (Requirement(lambda q: _bits(q) > 128, "vec", SM_100),)
"""Accesses of 256 bits."""

_GLOBAL_ONLY = ("L1_eviction", "L2_eviction", "cache_hint", "prefetch_size")


def _hints_are_global(q: Qualifiers) -> bool:
    return q.get("space", "global") == "global" or not any(slot in q for slot in _GLOBAL_ONLY)


_RULES = (
    Rule(lambda q: "vec" not in q or q["type"] != "b128", "vec", "'.b128' takes no vector", "a scalar"),
    Rule(
        lambda q: _bits(q) <= 128 or (_bits(q) == 256 and q["type"][1:] in ("32", "64")),
        "vec",
        "'.{vec}' of '.{type}' is wider than 128 bits",
        ".v2 or .v4 up to 128 bits; .v8 of 32-bit and .v4 of 64-bit types on sm_100",
    ),
    Rule(
        lambda q: _bits(q) <= 128 or q.get("space", "global") == "global",
        "space",
        "an access of 256 bits does not go with '.{space}'",
        ".global or generic addressing",
    ),
    Rule(
        _hints_are_global,
        "space",
        "cache hints do not go with '.{space}'",
        ".global or generic addressing where a hint is given",
    ),
)

_EVICT2_RULES = (
    *_RULES,
    Rule(
        lambda q: "L2_eviction" not in q or _bits(q) == 256,
        "L2_eviction",
        "'.{L2_eviction}' needs an access of 256 bits",
        ".v8 of 32-bit and .v4 of 64-bit types",
    ),
)


def _load(match: Match) -> Op:
    q = match.q
    volatile = "volatile" in q or "mmio" in q
    sem = q.get("sem", "relaxed" if volatile else "weak")
    return Load(
        dsts=registers(match.args["d"]),
        address=address(match.args["a"]),
        type=q["type"],
        sem=sem,
        scope="sys" if volatile else q.get("scope"),
        space=shared_space(q),
        volatile=volatile,
        non_coherent="nc" in q,
        **match.common,
    )


def _store(match: Match) -> Op:
    q = match.q
    volatile = "volatile" in q or "mmio" in q
    sem = q.get("sem", "relaxed" if volatile else "weak")
    return Store(
        srcs=values(match.args["b"]),
        address=address(match.args["a"]),
        type=q["type"],
        sem=sem,
        scope="sys" if volatile else q.get("scope"),
        space=shared_space(q),
        volatile=volatile,
        **match.common,
    )


_WEAK = Slot("sem", ("weak",), optional=True)
_ADDRESS = Arg("a", "mem", space="$space", generic=("global", "shared"))
_LD_ARGS = (Arg("d", "dst", "$type", count=vector_length, wide=True, sinkable=False), _ADDRESS)
_ST_ARGS = (_ADDRESS, Arg("b", "src", "$type", count=vector_length, wide=True))

LD = Family(
    name="ld",
    kind=Kind.LOAD,
    section="9.7.9.8",
    title="load from memory",
    undefined=("address not aligned to the access", "address outside the object or the state space"),
    variants=(
        Variant(
            name="weak",
            slots=(_WEAK, _space(_LD_SPACES), _EVICT1, _EVICT2, CACHE_HINT, _PREFETCH, _VEC, _TYPE),
            args=(*_LD_ARGS, CACHE_POLICY),
            rules=_EVICT2_RULES,
            requirements=_WIDE,
            lower=_load,
        ),
        Variant(
            name="weak, cache operator",
            slots=(_WEAK, _space(_LD_SPACES), _LD_COP, CACHE_HINT, _PREFETCH, _VEC, _TYPE),
            args=(*_LD_ARGS, CACHE_POLICY),
            rules=_RULES,
            requirements=_WIDE,
            lower=_load,
        ),
        Variant(
            name="relaxed or acquire",
            slots=(
                Slot("sem", ("relaxed", "acquire")),
                scope_slot(),
                _space(_STRONG_SPACES),
                _EVICT1,
                _EVICT2,
                CACHE_HINT,
                _PREFETCH,
                _VEC,
                _TYPE,
            ),
            args=(*_LD_ARGS, CACHE_POLICY),
            rules=_EVICT2_RULES,
            requirements=_WIDE,
            lower=_load,
            needs=("sm_70",),
            ptx="6.0",
        ),
        Variant(
            name="volatile",
            slots=(Slot("volatile", ("volatile",)), _space(_STRONG_SPACES), _PREFETCH, _VEC, _TYPE),
            args=_LD_ARGS,
            rules=_RULES,
            requirements=_WIDE,
            lower=_load,
        ),
        Variant(
            name="mmio",
            slots=(
                Slot("mmio", ("mmio",)),
                Slot("sem", ("relaxed", "acquire"), ptx={"acquire": "9.5"}),
                Slot("scope", ("sys",)),
                Slot("space", ("global",), optional=True, kind="space"),
                Slot("type", TYPES, kind="type"),
            ),
            args=_LD_ARGS,
            lower=_load,
            needs=("sm_70",),
            ptx="8.2",
        ),
        Variant(
            name="readonly proxy",
            slots=(
                Slot("space", ("global",), optional=True, kind="space"),
                Slot("nc", ("nc",), optional=True),
                Slot("vec", ("v2", "v4", "v8"), optional=True),
                Slot("type", tuple(kind for kind in TYPES if kind != "b128"), kind="type"),
                Slot("proxy", ("proxy::readonly",)),
            ),
            args=_LD_ARGS,
            rules=(
                *_RULES,
                Rule(lambda q: "nc" not in q or "space" in q, "nc", "'.nc' needs a state space", ".global"),
            ),
            requirements=_WIDE,
            lower=unsupported,
            needs=SM_90,
            ptx="9.4",
        ),
        *(
            Variant(
                name="non-coherent",
                slots=(
                    Slot("space", ("global",), kind="space"),
                    caching,
                    Slot("nc", ("nc",)),
                    *hints,
                    CACHE_HINT,
                    _PREFETCH,
                    _VEC,
                    _TYPE,
                ),
                args=(*_LD_ARGS, CACHE_POLICY),
                rules=_EVICT2_RULES if hints else _RULES,
                requirements=_WIDE,
                lower=_load,
            )
            for caching, hints in ((_EVICT1, (_EVICT2,)), (Slot("cache_operator", ("ca", "cg", "cs")), ()))
        ),
    ),
)

ST = Family(
    name="st",
    kind=Kind.STORE,
    section="9.7.9.11",
    title="store to memory",
    undefined=("address not aligned to the access", "address outside the object or the state space"),
    variants=(
        Variant(
            name="weak",
            slots=(_WEAK, _space(_ST_SPACES), _EVICT1, _EVICT2, CACHE_HINT, _VEC, _TYPE),
            args=(*_ST_ARGS, CACHE_POLICY),
            rules=_EVICT2_RULES,
            requirements=_WIDE,
            lower=_store,
        ),
        Variant(
            name="weak, cache operator",
            slots=(_WEAK, _space(_ST_SPACES), _ST_COP, CACHE_HINT, _VEC, _TYPE),
            args=(*_ST_ARGS, CACHE_POLICY),
            rules=_RULES,
            requirements=_WIDE,
            lower=_store,
        ),
        Variant(
            name="relaxed or release",
            slots=(
                Slot("sem", ("relaxed", "release")),
                scope_slot(),
                _space(_STRONG_SPACES),
                _EVICT1,
                _EVICT2,
                CACHE_HINT,
                _VEC,
                _TYPE,
            ),
            args=(*_ST_ARGS, CACHE_POLICY),
            rules=_EVICT2_RULES,
            requirements=_WIDE,
            lower=_store,
            needs=("sm_70",),
            ptx="6.0",
        ),
        Variant(
            name="volatile",
            slots=(Slot("volatile", ("volatile",)), _space(_STRONG_SPACES), _VEC, _TYPE),
            args=_ST_ARGS,
            rules=_RULES,
            requirements=_WIDE,
            lower=_store,
        ),
        Variant(
            name="mmio",
            slots=(
                Slot("mmio", ("mmio",)),
                Slot("sem", ("relaxed", "release"), ptx={"release": "9.5"}),
                Slot("scope", ("sys",)),
                Slot("space", ("global",), optional=True, kind="space"),
                Slot("type", TYPES, kind="type"),
            ),
            args=_ST_ARGS,
            lower=_store,
            needs=("sm_70",),
            ptx="8.2",
        ),
    ),
)


def _fill(match: Match) -> Op:
    return Fill(address=address(match.args["a"]), size=value(match.args["size"]), **match.common)


ST_BULK = Family(
    name="st.bulk",
    kind=Kind.FILL,
    section="9.7.9.13",
    title="fill shared memory with zeros",
    ptx="8.6",
    needs=SM_100,
    undefined=("size is not a multiple of 8", "the address is not in shared memory"),
    variants=(
        Variant(
            name="",
            slots=(_WEAK, Slot("space", ("shared::cta",), optional=True, kind="space")),
            args=(
                Arg("a", "mem", space="$space", generic=("shared",)),
                Arg("size", "src", "u64"),
                Arg("initval", "imm", values=(0,)),
            ),
            lower=_fill,
        ),
    ),
)

FAMILIES = (LD, ST, ST_BULK)
