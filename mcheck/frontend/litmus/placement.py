"""Places: from ``cta 0, warp 1..5`` to threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.declarations import declare_unnamed_parameter
from mcheck.frontend.litmus.expressions import parse_constant, parse_expression
from mcheck.frontend.litmus.lexer import NAME, NUMBER, Tokens
from mcheck.frontend.litmus.scope import Scope
from mcheck.ir.expr import Const, Expr
from mcheck.ir.memory import Cta
from mcheck.ir.program import Place

KEYS = ("gpu", "cluster", "cta", "warp", "lane")
LIMITS = {"gpu": 1 << 10, "cluster": 1 << 20, "cta": 1 << 20, "warp": 1 << 10, "warpgroup": 1 << 8, "lane": 32}
MAX_LISTED = 1 << 10
MAX_THREADS = 4096
WARP = 32
GROUP = 4
"""Warps of a warpgroup (PTX ISA 9.7.15)."""
ONE = range(1)


@dataclass(frozen=True, slots=True)
class Placement:
    """What stands behind ``NAME@``: the numbers of each key that is given; warpgroups are warps here."""

    name: str
    ranges: dict[str, Sequence[int]] = field(default_factory=dict)
    span: Span | None = None
    ends: dict[str, Expr] = field(default_factory=dict)
    """The end of each range that depends on the parameter of the file, where that stays a name; its first number is in
    ``ranges``.
    """


@dataclass(frozen=True, slots=True)
class Grid:
    """The places of every placement in order, and the size of each (gpu, cluster)."""

    threads: tuple[tuple[Place, ...], ...]
    ctas: tuple[Cta, ...]
    clustered: bool
    sizes: dict[tuple[int, int], int]
    warps: dict[int, int]


def parse_placement(tokens: Tokens, scope: Scope, name: str, at: int, ends: tuple[str, ...]) -> Placement:
    """Parse ``@key N, key A..B, key A, B, C..D``; token ``at`` is the name, and one of ``ends`` follows."""
    if tokens.text != "@":
        raise problem(
            "LIT040", tokens.span(at), name=name, expected=f"{name}@cta 0", hint="name the CTA in which it runs"
        )
    tokens.at += 1
    ranges: dict[str, Sequence[int]] = {}
    places: dict[str, Expr] = {}
    while tokens.text not in ends:
        key_at = tokens.at
        key = tokens.text
        if tokens.kind != NAME:
            raise tokens.unexpected("one of " + ", ".join(KEYS))
        if key not in LIMITS:
            raise problem(
                "LIT041", tokens.span(), found=f"'{key}'", expected="one of " + ", ".join(KEYS),
                hint=suggest(key, LIMITS),
            )  # fmt: skip
        tokens.at += 1
        meant = "warp" if key == "warpgroup" else key
        if meant in ranges:
            raise problem("LIT042", tokens.span(key_at), key=meant)
        declare_unnamed_parameter(tokens, scope, (",", *ends))
        numbers = _open_range(tokens, scope, key, places) or _numbers(tokens, scope, key)
        if key == "warpgroup":
            numbers = [GROUP * group + warp for group in numbers for warp in range(GROUP)]
        ranges[meant] = numbers
        if not tokens.accept(","):
            break
    if tokens.text not in ends:
        hint = "is a ';' missing at the end of the row above?" if ends == ("",) and tokens.on_new_line() else None
        expected = "',' or " + " or ".join(f"'{end}'" if end else "the end of the cell" for end in ends)
        raise tokens.unexpected(expected, hint)
    return Placement(name, ranges, tokens.span_since(at), places)


def _open_range(tokens: Tokens, scope: Scope, key: str, places: dict[str, Expr]) -> Sequence[int]:
    """Parse ``A..B`` where B depends on the parameter, which stays a name: B goes to ``places``. Else parse nothing."""
    if not scope.symbolic:
        return ()
    at = tokens.at
    low = parse_expression(tokens, scope)
    if isinstance(low, Const) and low.value >= 0 and tokens.accept(".."):
        high = parse_expression(tokens, scope)
        listed = tokens.text == "," and _is_number(tokens, scope, tokens.at + 1)
        if not isinstance(high, Const) and not listed:
            places[key] = high
            return range(low.value, low.value + 1)
    tokens.at = at
    return ()


def _numbers(tokens: Tokens, scope: Scope, key: str) -> Sequence[int]:
    """Parse ``N``, ``A..B`` or several of them; a key after a comma ends them."""
    at = tokens.at
    found: Sequence[int] = _range(tokens, scope, key)
    while tokens.text == "," and _is_number(tokens, scope, tokens.at + 1):
        tokens.at += 1
        more = _range(tokens, scope, key)
        found = [*found, *more] if len(found) + len(more) <= MAX_LISTED else []
        if len(set(found)) < len(found) or not found:
            raise problem("LIT092", tokens.span_since(at), key=key, expected=f"at most {MAX_LISTED} different numbers")
    return found if isinstance(found, range) else sorted(found)


def _is_number(tokens: Tokens, scope: Scope, at: int) -> bool:
    """Whether a number begins at token ``at``; otherwise it is the next key, or an error."""
    text = tokens.texts[at]
    return tokens.kinds[at] == NUMBER or text == "(" or scope.constant(text) is not None


def _range(tokens: Tokens, scope: Scope, key: str) -> range:
    at = tokens.at
    low = parse_constant(tokens, scope, f"a {key} number")
    high = low + 1
    if tokens.accept(".."):
        high = parse_constant(tokens, scope, f"a {key} number")
        if high <= low:
            raise problem("LIT043", tokens.span_since(at), low=low, high=high, expected="a half-open range: low..high")
    if low < 0 or high > LIMITS[key]:
        value = low if low < 0 else high - 1
        raise problem("LIT044", tokens.span_since(at), key=key, value=value, expected=f"0 to {LIMITS[key] - 1}")
    return range(low, high)


def enumerate_threads(placements: Sequence[Placement]) -> Grid:
    """The threads of all placements with their CTAs; raises ``InputError`` if two threads have one place."""
    clustered = any("cluster" in item.ranges for item in placements)
    total = 0
    for item in placements:
        count = 1
        for word in KEYS:
            count *= len(item.ranges.get(word, ONE))
        if "warp" in item.ranges and "lane" not in item.ranges:
            count *= WARP
        total += count
        if total > MAX_THREADS:
            raise problem("LIT049", item.span, count=total, limit=MAX_THREADS)
    keys: set[tuple[int, int, int]] = set()
    for item in placements:
        keys.update(_ctas(item, clustered))
    sizes: dict[tuple[int, int], int] = {}
    for gpu, cluster, rank in keys:
        sizes[gpu, cluster] = max(sizes.get((gpu, cluster), 0), rank + 1)
    ctas = {key: Cta(number, *key) for number, key in enumerate(sorted(keys))}
    warps = _explicit_warps(placements, ctas, clustered)
    taken: dict[tuple[int, int, int], str] = {}
    free: dict[int, int] = {}
    threads: list[tuple[Place, ...]] = []
    for item in placements:
        places: list[Place] = []
        lone = "warp" not in item.ranges and "lane" not in item.ranges
        for key in _ctas(item, clustered):
            cta = ctas[key]
            if lone:
                warp = free.get(cta.number, 0)
                used = warps.setdefault(cta.number, set())
                while warp in used:
                    warp += 1
                used.add(warp)
                free[cta.number] = warp + 1
                slots = [(warp, 0)]
            else:
                lanes = item.ranges.get("lane", range(WARP))
                slots = [(warp, lane) for warp in item.ranges.get("warp", ONE) for lane in lanes]
            for warp, lane in slots:
                slot = (cta.number, warp, lane)
                if slot in taken:
                    raise problem("LIT045", item.span, name=item.name, other=taken[slot], hint=_where(cta, warp, lane))
                taken[slot] = item.name
                places.append(Place(cta, warp, lane))
        threads.append(tuple(places))
    highest = {number: max(used) + 1 for number, used in warps.items() if used}
    return Grid(tuple(threads), tuple(ctas.values()), clustered, sizes, highest)


def _ctas(item: Placement, clustered: bool) -> list[tuple[int, int, int]]:
    """(gpu, cluster, rank) of every CTA of a placement, in order; without clusters every CTA is one of its own."""
    gpus = item.ranges.get("gpu", ONE)
    clusters = item.ranges.get("cluster", ONE)
    ranks = item.ranges.get("cta", ONE)
    if not clustered:
        return [(gpu, cta, 0) for gpu in gpus for cta in ranks]
    return [(gpu, cluster, rank) for gpu in gpus for cluster in clusters for rank in ranks]


def _explicit_warps(
    placements: Sequence[Placement], ctas: dict[tuple[int, int, int], Cta], clustered: bool
) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for item in placements:
        if "warp" in item.ranges or "lane" in item.ranges:
            for key in _ctas(item, clustered):
                found.setdefault(ctas[key].number, set()).update(item.ranges.get("warp", ONE))
    return found


def _where(cta: Cta, warp: int, lane: int) -> str:
    return f"gpu {cta.gpu}, cluster {cta.cluster}, cta {cta.rank}, warp {warp}, lane {lane} can have only one thread"
