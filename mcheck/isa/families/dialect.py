"""The short pseudo-instructions of the table dialect: no types, no brackets, no state spaces.

Locations are 32 bits wide and named, never computed; arithmetic is signed. ``bar.cta.*`` names a static instance first.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.ir.expr import Binary, Const
from mcheck.ir.ops import Alu, Atomic, Barrier, Branch, Load, Op, ProxyFence, Store
from mcheck.isa.families.common import address, optional_value, register, value
from mcheck.isa.families.control import label
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Slot, Variant

SECTION = "table dialect"
_SECTIONS = {
    "ld": "9.7.9.8",
    "st": "9.7.9.11",
    "atom": "9.7.13.5",
    "red": "9.7.13.6",
    "add": "9.7.1.1",
    "sub": "9.7.1.2",
    "mul": "9.7.1.3",
    "div": "9.7.1.8",
    "goto": "9.7.12.3",
    "fence.proxy": "9.7.13.4",
    "bar.cta": "9.7.13.1",
}
"""The section of the instruction that a short form abridges."""
TYPE = "s32"

_R = Arg("r", "dst", TYPE)
_LOC = Arg("location", "name")
_V = Arg("value", "src", TYPE)
_W = Arg("value2", "src", TYPE)
_STRONG = Slot("scope", ("cta", "gpu", "sys"))


def _family(name: str, kind: Kind, title: str, *variants: Variant) -> Family:
    section = _SECTIONS.get(name, SECTION)
    return Family(name=name, kind=kind, section=section, title=title, ptx="6.0", variants=variants, dialect=True)


def _move(match: Match) -> Op:
    return Alu(
        op="mov", type=TYPE, dsts=(register(match.args["r"]),), srcs=(value(match.args["value"]),), **match.common
    )


def _load(proxy: str) -> Callable[[Match], Op]:
    def lower(match: Match) -> Op:
        q, args = match.q, match.args
        return Load(
            dsts=(register(args["r"]),),
            address=address(args["location"]),
            type=TYPE,
            sem=q["sem"],
            scope=q.get("scope"),
            proxy=proxy,
            **match.common,
        )

    return lower


def _loads(name: str, proxy: str) -> Family:
    lower = _load(proxy)
    variants = [
        Variant(name="weak", slots=(Slot("sem", ("weak",)),), args=(_R, _LOC), lower=lower),
        Variant(name="strong", slots=(Slot("sem", ("relaxed", "acquire")), _STRONG), args=(_R, _LOC), lower=lower),
    ]
    if name == "ld":
        variants.insert(0, Variant(name="register move", args=(_R, _V), lower=_move))
    return _family(name, Kind.LOAD, f"load through the {proxy} proxy", *variants)


def _store(proxy: str) -> Callable[[Match], Op]:
    def lower(match: Match) -> Op:
        q, args = match.q, match.args
        return Store(
            address=address(args["location"]),
            srcs=(value(args["value"]),),
            type=TYPE,
            sem=q["sem"],
            scope=q.get("scope"),
            proxy=proxy,
            **match.common,
        )

    return lower


def _stores(name: str, proxy: str) -> Family:
    lower = _store(proxy)
    return _family(
        name,
        Kind.STORE,
        f"store through the {proxy} proxy",
        Variant(name="weak", slots=(Slot("sem", ("weak",)),), args=(_LOC, _V), lower=lower),
        Variant(name="strong", slots=(Slot("sem", ("relaxed", "release")), _STRONG), args=(_LOC, _V), lower=lower),
    )


def _atomic(proxy: str, is_red: bool) -> Callable[[Match], Op]:
    def lower(match: Match) -> Op:
        q, args = match.q, match.args
        srcs = (value(args["value"]), value(args["value2"])) if "value2" in args else (value(args["value"]),)
        return Atomic(
            dst=register(args.get("r")),
            op=q["op"],
            address=address(args["location"]),
            srcs=srcs,
            type=TYPE,
            sem=q["sem"],
            scope=q["scope"],
            proxy=proxy,
            is_red=is_red,
            **match.common,
        )

    return lower


def _atomics(name: str, proxy: str) -> Family:
    is_red = name in ("red", "sured")
    lower = _atomic(proxy, is_red)
    sem = Slot("sem", ("relaxed", "acquire", "release", "acq_rel"))
    destination = () if is_red else (_R,)
    operations = ("add", "sub", "mul", "div", "and", "or", "xor") + (() if is_red else ("exch",))
    variants = [Variant(slots=(sem, _STRONG, Slot("op", operations)), args=(*destination, _LOC, _V), lower=lower)]
    if not is_red:
        swap = (sem, _STRONG, Slot("op", ("cas",)))
        variants.append(Variant(name="compare and swap", slots=swap, args=(*destination, _LOC, _V, _W), lower=lower))
    return _family(name, Kind.REDUCTION if is_red else Kind.ATOMIC, f"atomic through the {proxy} proxy", *variants)


def _alu(name: str) -> Family:
    op = "mul.lo" if name == "mul" else name

    def lower(match: Match) -> Op:
        srcs = (value(match.args["value"]), value(match.args["value2"]))
        return Alu(op=op, type=TYPE, dsts=(register(match.args["r"]),), srcs=srcs, **match.common)

    return _family(name, Kind.ARITHMETIC, "arithmetic on registers", Variant(args=(_R, _V, _W), lower=lower))


_COMPARISONS = {"beq": "==", "bne": "!=", "blt": "<", "bgt": ">", "ble": "<=", "bge": ">="}


def _branch(name: str) -> Family:
    operator = _COMPARISONS[name]

    def lower(match: Match) -> Op:
        condition = Binary(operator, value(match.args["value"]), value(match.args["value2"]))
        return Branch(target=label(match), condition=condition, **match.common)

    return _family(
        name, Kind.BRANCH, f"branch if {operator}", Variant(args=(_V, _W, Arg("label", "label")), lower=lower)
    )


def _goto(match: Match) -> Op:
    return Branch(target=label(match), **match.common)


def _proxy_fence(match: Match) -> Op:
    return ProxyFence(kind=match.q["kind"], **match.common)


def _barrier(match: Match) -> Op:
    return Barrier(
        kind=match.q["kind"],
        barrier=optional_value(match, "id"),
        count=optional_value(match, "quorum"),
        aligned=False,
        instance=_constant(match, "instance"),
        **match.common,
    )


def _constant(match: Match, name: str) -> int:
    expr = value(match.args[name])
    assert isinstance(expr, Const)
    return expr.value


FAMILIES = (
    _loads("ld", "generic"),
    _loads("tld", "texture"),
    _loads("suld", "surface"),
    _loads("cold", "constant"),
    _stores("st", "generic"),
    _stores("sust", "surface"),
    _atomics("atom", "generic"),
    _atomics("suatom", "surface"),
    _atomics("red", "generic"),
    _atomics("sured", "surface"),
    *(_alu(name) for name in ("add", "sub", "mul", "div")),
    *(_branch(name) for name in _COMPARISONS),
    _family("goto", Kind.BRANCH, "branch", Variant(args=(Arg("label", "label"),), lower=_goto)),
    _family(
        "fence.proxy",
        Kind.PROXY_FENCE,
        "proxy fence of the extended proxies",
        Variant(slots=(Slot("kind", ("generic", "texture", "surface", "constant")),), lower=_proxy_fence),
    ),
    _family(
        "bar.cta",
        Kind.BARRIER,
        "barrier with a static instance",
        Variant(
            slots=(Slot("kind", ("sync", "arrive")),),
            args=(
                Arg("instance", "literal"),
                Arg("id", "src", TYPE, optional=True),
                Arg("quorum", "src", TYPE, optional=True),
            ),
            lower=_barrier,
        ),
    ),
)
