"""``ld``, ``st`` and ``st.bulk`` (PTX ISA 9.7.9.8, 9.7.9.11, 9.7.9.13).

``.volatile`` is a relaxed access at system scope with promises about the instruction count, ``.mmio`` likewise
(PTX ISA 8.4.2, 8.4.3); without a qualifier the access is weak.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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


def _common(match: Match) -> dict[str, Any]:
    """The fields that loads and stores have alike."""
    q = match.q
    volatile = "volatile" in q or "mmio" in q
    return {
        "address": address(match.args["a"]),
        "type": q["type"],
        "sem": q.get("sem", "relaxed" if volatile else "weak"),
        "scope": "sys" if volatile else q.get("scope"),
        "space": shared_space(q),
        "volatile": volatile,
        **match.common,
    }


def _load(match: Match) -> Op:
    return Load(dsts=registers(match.args["d"]), non_coherent="nc" in match.q, **_common(match))


def _store(match: Match) -> Op:
    return Store(srcs=values(match.args["b"]), **_common(match))


_WEAK = Slot("sem", ("weak",), optional=True)
_ADDRESS = Arg("a", "mem", space="$space", generic=("global", "shared"))
_LD_ARGS = (Arg("d", "dst", "$type", count=vector_length, wide=True, sinkable=False), _ADDRESS)
_ST_ARGS = (_ADDRESS, Arg("b", "src", "$type", count=vector_length, wide=True))

_EVICTION = (_EVICT1, _EVICT2, CACHE_HINT)
_GLOBAL = Slot("space", ("global",), optional=True, kind="space")


def _variants(
    args: tuple[Arg, ...],
    lower: Callable[[Match], Op],
    spaces: tuple[str, ...],
    order: str,
    cache: Slot,
    *prefetch: Slot,
) -> tuple[Variant, ...]:
    """The variants that ``ld`` and ``st`` have alike; ``order`` is the one that a strong access may have."""
    shape = (*prefetch, _VEC, _TYPE)
    hinted = partial(Variant, args=(*args, CACHE_POLICY), requirements=_WIDE, lower=lower)
    return (
        hinted(name="weak", slots=(_WEAK, _space(spaces), *_EVICTION, *shape), rules=_EVICT2_RULES),
        hinted(name="weak, cache operator", slots=(_WEAK, _space(spaces), cache, CACHE_HINT, *shape), rules=_RULES),
        hinted(
            name=f"relaxed or {order}",
            slots=(Slot("sem", ("relaxed", order)), scope_slot(), _space(_STRONG_SPACES), *_EVICTION, *shape),
            rules=_EVICT2_RULES,
            needs=("sm_70",),
            ptx="6.0",
        ),
        Variant(
            name="volatile",
            slots=(Slot("volatile", ("volatile",)), _space(_STRONG_SPACES), *shape),
            args=args,
            rules=_RULES,
            requirements=_WIDE,
            lower=lower,
        ),
        Variant(
            name="mmio",
            slots=(
                Slot("mmio", ("mmio",)),
                Slot("sem", ("relaxed", order), ptx={order: "9.5"}),
                Slot("scope", ("sys",)),
                _GLOBAL,
                Slot("type", TYPES, kind="type"),
            ),
            args=args,
            lower=lower,
            needs=("sm_70",),
            ptx="8.2",
        ),
    )


LD = Family(
    name="ld",
    kind=Kind.LOAD,
    section="9.7.9.8",
    title="load from memory",
    undefined=("address not aligned to the access", "address outside the object or the state space"),
    variants=(
        *_variants(_LD_ARGS, _load, _LD_SPACES, "acquire", _LD_COP, _PREFETCH),
        Variant(
            name="readonly proxy",
            slots=(
                _GLOBAL,
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
    variants=_variants(_ST_ARGS, _store, _ST_SPACES, "release", _ST_COP),
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
