"""Generator of the source of the function that computes the relations of one new event, node by node of a tape.

For every relation it computes two sets, each an integer whose bits are events: ``c``, the events related to the new one
(which may be among them), and ``r``, the earlier events that the new one is related to. Most relations only lead
forward, so that ``r`` is empty. For a set it computes ``s``, whether the new event is a member.

What is known of the event beforehand (``Known``) is folded as a constant, common subexpressions are computed once, and
dead code is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from typing import NamedTuple

from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass
from mcheck.cat.algebra.tape import Tape
from mcheck.engines.protocol.incremental.composition import split_relation, split_scope
from mcheck.engines.protocol.incremental.kinds import BOTH, DYNAMIC, NOTHING, ONE_WAY, SET

EVERY = frozenset(("ALL", "OTHERS"))
"""All events, and all except the new one."""
VARIABLE = re.compile(r"\b[crs]\d+\b")
KEPT = re.compile(r"\b([AFM])(\d+)\b")


UNIONS = 4096
"""A number larger than the unions that any model computes for an event."""
TURNED, LED_BACK = 1, 2
"""What a function returns: edges relate earlier events to each other, or a closure leads back to earlier events and
relates none of them to each other that it did not relate before.
"""


class Known(NamedTuple):
    """What all events of a kind have in common.

    ``sets`` contain them; ``edges`` are the base relations with edges to them, ``back`` those with edges from them to
    earlier events; ``alone`` are the remaining relations that relate them to nothing.
    """

    sets: frozenset[str]
    edges: frozenset[str]
    back: frozenset[str]
    alone: frozenset[str]


@dataclass(slots=True)
class Statement:
    """Lines of code, the variables that they set, and whether they have an ``effect`` besides."""

    sets: tuple[str, ...]
    lines: list[str]
    effect: bool = False


@dataclass(slots=True)
class Writer:
    """A writer of the code for the ``wanted`` nodes.

    By node, ``c`` and ``r`` are the expressions of its sets: a variable, ``0`` or ``B``, the new event itself; ``s`` is
    a variable, ``True`` or ``False``.
    """

    tape: Tape
    kind: list[str]
    wanted: set[int]
    known: Known | None = None
    noted: bool = False
    """Whether the event is stored already; otherwise the stored ones are the earlier events."""
    chained: dict[int, int] = field(default_factory=dict)
    """Nodes of which only the latest events count (``mcheck.engines.protocol.incremental.composition.find_chains``)."""
    home: dict[int, int] = field(default_factory=dict)
    """For stored nodes, the node under which their columns are: equal ones are stored once."""
    kept: frozenset[int] = frozenset()
    """Nodes for which ``home`` is to be determined."""
    out: list[Statement] = field(default_factory=list)
    c: dict[int, str] = field(default_factory=dict)
    r: dict[int, str] = field(default_factory=dict)
    s: dict[int, str] = field(default_factory=dict)
    own: frozenset[int] = frozenset()
    """Nodes ``a; b`` of which only reflexive pairs of the new event are needed."""
    universal: set[int] = field(default_factory=set)
    """Sets that contain every event, whatever its kind."""
    unions: dict[tuple[int, int], int] = field(default_factory=dict)
    """Number of each union that is remembered per thread: by node and, for a closure, member."""
    same: dict[str, str] = field(default_factory=dict)
    """Variables by the expression that they stand for."""

    def nodes(self) -> None:
        """Write all nodes."""
        wanted = sorted(self.wanted)
        groups: dict[int, list[int]] = {}
        for n in wanted:
            if self.tape.group_of[n] >= 0:
                groups.setdefault(self.tape.group_of[n], []).append(n)
        # what does not depend on the recursion stands between its nodes, or behind them
        ends = {max([members[-1], *self._bodies(group)]): group for group, members in groups.items()}
        for n in wanted:
            if self.tape.group_of[n] < 0:
                self._node(n)
                self._settle(n)
            if n in ends:
                self._group(ends[n], groups[ends[n]])

    def _bodies(self, group: int) -> list[int]:
        """The nodes that recursive definitions stand for, and that are written."""
        return [b for v, b, what in self.tape.groups[group] if what == 0 and v in self.wanted and b in self.wanted]

    def _settle(self, n: int) -> None:
        """Determine under which node the columns of a node are stored."""
        if n not in self.kept or n in self.home:
            return
        if self.kind[n] == SET and self.s[n] == "True":
            self.universal.add(n)
        key = f"members {self.s[n]}" if self.kind[n] == SET else f"columns {self.c[n]} {self.row(n)}"
        self.home[n] = int(self.same.setdefault(key, str(n)))

    def col(self, n: int) -> str:
        """Return the expression of the ``c`` of a node."""
        if n < 0 or self.kind[n] == NOTHING or n not in self.wanted:
            return "0"
        if self.kind[n] == SET:
            s = self.s[n]
            return "B" if s == "True" else "0" if s == "False" else f"(B if {s} else 0)"
        return self.c[n]

    def row(self, n: int) -> str:
        """Return the expression of the ``r`` of a node."""
        return self.r[n] if n >= 0 and n in self.wanted and self.kind[n] == BOTH else "0"

    def member(self, n: int) -> str:
        """Return the expression of the ``s`` of a node."""
        return "False" if self.kind[n] == NOTHING or n not in self.wanted else self.s[n]

    def effect(self, *lines: str) -> None:
        """Add lines that are executed for their effect."""
        self.out.append(Statement((), list(lines), effect=True))

    def text(self, tail: Iterable[str]) -> list[str]:
        """Return the body, ending in ``tail``: the live part of what was written, preceded by the stored columns."""
        end = list(tail)
        used: set[str] = set()
        for line in end:
            used.update(VARIABLE.findall(line))
        kept: list[str] = []
        for statement in reversed(self.out):
            if not (statement.effect or used.intersection(statement.sets)):
                continue
            for line in statement.lines:
                used.update(VARIABLE.findall(line))
            kept += reversed(statement.lines)
        body = [*reversed(kept), *end]
        places = sorted({(kind, int(n)) for line in body for kind, n in KEPT.findall(line)})
        what = {"A": "V.cols[{}]", "F": "V.filled[{}]", "M": "V.masks[{}]"}
        out = [f"{kind}{n} = {what[kind].format(n)}{self.earlier if kind != 'A' else ''}" for kind, n in places]
        if any("OTHERS" in line or "ALL" in line for line in body):
            out.append(f"OTHERS = V.all{self.earlier}; ALL = OTHERS | B")
        if any("NEVER" in line for line in body):
            out.append(f"G = V.memo.get; T = t * {UNIONS}; NEVER = (0, 0)")
        return [*out, *body]

    @property
    def earlier(self) -> str:
        """The expression that restricts a set to earlier events."""
        return " & ~B" if self.noted else ""

    def follows_own_thread(self, n: int) -> bool:
        """Whether in a closure the new event comes after those of its thread, so that its column is like no other."""
        if self.known is None or "po" not in self.known.edges:
            return False
        code = self.tape.code
        members = (code[m] for m in self._members_of(code[n].a))
        return any("po" in (i.name, code[i.a].name if i.op == "sub" else "") for i in members)

    # --- expressions ----------------------------------------------------------------------------------------

    def _be(self, name: str, text: str) -> str:
        """Return a variable for an expression; an existing one if there is one."""
        if text in ("0", "B", "True", "False", *EVERY) or VARIABLE.fullmatch(text):
            return text
        found = self.same.get(text)
        if found is None:
            self.out.append(Statement((name,), [f"{name} = {text}"]))
            found = self.same[text] = name
        return found

    def _and(self, a: str, b: str) -> str:
        if a in EVERY or b in EVERY:
            return b if a in EVERY else a
        return "0" if "0" in (a, b) else a if a == b else f"{a} & {b}"

    def _or(self, *parts: str) -> str:
        left = list(dict.fromkeys(p for p in parts if p != "0"))
        if not EVERY.isdisjoint(left):
            return next(p for p in left if p in EVERY)
        if len(left) == 2 and all(map(VARIABLE.fullmatch, left)):  # to copy a long set takes longer than to ask
            return f"{left[0]} | {left[1]} if {left[1]} else {left[0]}"
        return " | ".join(left) or "0"

    def _sub(self, a: str, b: str) -> str:
        if a == "0" or a == b or b in EVERY:
            return "0"
        return a if b == "0" else f"{a} and {a} & ({a} ^ {b})"  # the complement of a long set takes longer

    def _own(self, a: str) -> str:
        """Return a condition: the new event is a member of a set."""
        return "True" if a in ("B", "ALL") else "False" if a in ("0", "OTHERS") else f"bool({a} & B)"

    def _if(self, condition: str, a: str) -> str:
        if condition == "False" or a == "0":
            return "0"
        return a if condition == "True" else f"({a} if {condition} else 0)"

    def _members(self, n: int) -> str:
        """Return an expression for all members of a set."""
        s = self.member(n)
        m = self._earlier(n)
        if m == "OTHERS":
            return "ALL"
        return f"({m} | B)" if s == "True" else m if s == "False" else f"(({m} | B) if {s} else {m})"

    def _earlier(self, n: int) -> str:
        """Return an expression for the earlier members of a set."""
        return "OTHERS" if n in self.universal else f"M{self.home.get(n, n)}"

    # --- nodes ----------------------------------------------------------------------------------------------

    def _group(self, group: int, members: list[int]) -> None:
        """Write recursive definitions: a fixed point from the empty relation."""
        variables = [(v, b) for v, b, what in self.tape.groups[group] if what == 0 and v in self.wanted]
        variables = [(v, b) for v, b in variables if self.kind[v] != NOTHING]
        written, before = len(self.out), dict(self.same)
        for v, _ in variables:
            self.c[v] = self.r[v] = "0"
        self._inside(members)
        if all(self.col(b) == "0" == self.row(b) for _, b in variables):
            return  # nothing comes of nothing
        del self.out[written:]
        self.same = {}  # what is in the loop is no constant
        for v, _ in variables:
            self.c[v], self.r[v] = f"c{v}", f"r{v}"
        self._inside(members)
        inner = self.out[written:]
        del self.out[written:]
        lines = [f"c{v} = 0; r{v} = 0" for v, _ in variables]
        lines.append("while True:")
        lines += [f"    {line}" for statement in inner for line in statement.lines]
        new = ", ".join(f"{self.col(b)}, {self.row(b)}" for _, b in variables)
        old = ", ".join(f"c{v}, r{v}" for v, _ in variables)
        lines += [f"    if ({new},) == ({old},): break", f"    {old} = {new}"]
        sets = [name for statement in inner for name in statement.sets]
        effect = any(statement.effect for statement in inner)
        self.out.append(Statement((*sets, *(f"{x}{v}" for v, _ in variables for x in "cr")), lines, effect=effect))
        self.same = before

    def _inside(self, members: list[int]) -> None:
        for n in members:
            if self.tape.code[n].op != "rec":
                self._node(n)

    def _node(self, n: int) -> None:
        if self.kind[n] == SET:
            self.s[n] = self._be(f"s{n}", self._set(n))
            return
        col, row = self._relation(n)
        self.c[n] = self._be(f"c{n}", col)
        if self.kind[n] == BOTH:
            self.r[n] = self._be(f"r{n}", row)

    def _set(self, n: int) -> str:
        i = self.tape.code[n]
        a, b = i.a, i.b
        match i.op:
            case "base":
                if i.name in ("_", "id", "same-access"):
                    return "True"
                return f"{i.name!r} in S" if self.known is None else str(i.name in self.known.sets)
            case "or":
                parts = [p for p in (self.member(a), self.member(b)) if p != "False"]
                return "True" if "True" in parts else " or ".join(dict.fromkeys(parts)) or "False"
            case "and":
                return self._all(self.member(x) if self.kind[x] == SET else self._own(self.col(x)) for x in (a, b))
            case "seq":
                return self._all((self.member(a), self.member(b)))
            case "sub":
                right = self.member(b) if self.kind[b] in (SET, NOTHING) else self._own(self.col(b))
                return self._all((self.member(a), self._not(right)))
            case "inv" | "plus":
                return self.member(a)
            case "opt" | "star":
                return "True"
            case "dom" | "rng":
                if i.op == "rng" and self.row(a) != "0":  # that earlier events enter the range is not followed
                    self.effect(f"if {self.row(a)} and {self.row(a)} & ~{self._earlier(n)}: V.missed = True")
                if self.kind[a] == SET:
                    return self.member(a)
                col = self.col(a)
                return "True" if col == "B" else "False" if col == "0" else f"bool({col})"
            case "compset":
                return self._not(self.member(a))
        raise Unsupported(f"the operator {i.op} of a model")

    def _all(self, parts: Iterable[str]) -> str:
        left = list(dict.fromkeys(p for p in parts if p != "True"))
        return "False" if "False" in left else " and ".join(left) or "True"

    def _not(self, s: str) -> str:
        return "True" if s == "False" else "False" if s == "True" else f"(not {s})"

    def _relation(self, n: int) -> tuple[str, str]:
        """Return the expressions of the two sets of a node."""
        i = self.tape.code[n]
        a, b = i.a, i.b
        ca, cb, ra, rb = self.col(a), self.col(b), self.row(a), self.row(b)
        match i.op:
            case "base":
                return self._base(n, i.name)
            case "or":
                return self._or(ca, cb), self._or(ra, rb)
            case "and":
                return self._and(ca, cb), self._and(ra, rb)
            case "sub":
                return self._sub(ca, cb), self._sub(ra, rb)
            case "inv":
                own = "0" if ca == "0" else "B" if ca == "B" else f"({ca} & B)"
                return self._or(ra, own), "0" if ca in ("0", "B") else f"{ca} ^ ({ca} & B)"
            case "prod":
                return self._if(self.member(b), self._members(a)), self._if(self.member(a), self._earlier(b))
            case "comp":
                return self._sub("ALL", ca), self._sub("OTHERS", ra)
            case "seq":
                return self._seq(n, a, b)
            case "plus" | "star" | "opt":
                own = "0" if i.op == "plus" else "B"
                if i.op == "opt" or self.kind[a] == SET:
                    return self._or(ca, own), ra
                if n in self.kept and self.tape.group_of[n] < 0:  # equal relations have equal closures
                    self.home[n] = int(self.same.setdefault(f"{i.op} {ca} {ra}", str(n)))
                col = self._or(ca, *(self._closed(n, k) for k in self._members_of(a)), own)
                return (col, "0") if ra == "0" else self._led_back(n, col, ra)
        raise Unsupported(f"the operator {i.op} of a model")

    def _led_back(self, n: int, col: str, back: str) -> tuple[str, str]:
        """Return the sets of a closure that leads from the new event ``back`` to earlier ones, and on from there. If
        all that comes before the new event comes before these anyway, no earlier events are related anew.
        """
        if self.tape.group_of[n] >= 0:  # within a recursive definition the stored columns are not those of this round
            self.effect(f"if {back}: dirty |= {TURNED}")
            return col, back
        before, column = self._be(f"c{n}", col), f"A{self.home.get(n, n)}"
        row = self._be(f"r{n}", f"V.all_after({back}, {column}) & ~B if {back} else 0")
        self.effect(f"if {row}: dirty |= {TURNED} if V.relates_anew({before} & ~B, {row}, {column}) else {LED_BACK}")
        return before, row

    def _members_of(self, n: int) -> list[int]:
        """Return the operands of a union."""
        i = self.tape.code[n]
        return [*self._members_of(i.a), *self._members_of(i.b)] if i.op == "or" and self.kind[n] != SET else [n]

    def _closed(self, n: int, member: int) -> str:
        """Return the predecessors in the closure ``n`` of the events that one of its members relates to the new event.

        For some members this set grows along a thread, for others it is the same for several threads.
        """
        x = self.col(member)
        if x in ("0", "B"):
            return "0"
        home = self.home.get(n, n)
        found = self.same.get(f"{home} before {x}")
        if found is None:
            found = self.same[f"{home} before {x}"] = f"c{n}{member:04}"
            self._remembered(found, x, home, f"union_closure(y, A{home}, {home}", (n, member))
        return found

    def _base(self, n: int, name: str) -> tuple[str, str]:
        known = self.known
        if name in DYNAMIC:
            col = "0" if known is not None and name not in known.edges else f"D({name!r}, 0)"
            row = "0" if known is not None and name not in known.back else f"R({name!r}, 0)"
            return col, row
        if known is not None and name in known.alone:
            return "0", "0"
        found = "one_way" if name in ONE_WAY else "static"
        self.out.append(Statement((f"c{n}", f"r{n}"), [f"c{n}, r{n} = V.{found}({name!r}, E, B)"]))
        return f"c{n}", f"r{n}"

    def _remembered(self, name: str, x: str, column: int, call: str, which: tuple[int, int]) -> None:
        """Add a variable for the result of a call on a set ``y`` of earlier events with a nonempty column.

        The call is skipped if the last set of this thread was the same.
        """
        number = self.unions.setdefault(which, len(self.unions))
        text = f"(y and (k[1] if (k := G(T + {number}, NEVER))[0] == y else V.{call}, T + {number}, k)))"
        self.out.append(Statement((name,), [f"y = {x} & F{column}", f"{name} = {text}"]))

    def _over(self, n: int, x: str, column: int, part: int = 0, *, both: bool = False, scope: str = "") -> str:
        """Return a variable for the union of a stored column over a set of earlier events.

        ``part``: which of the unions of the node it is. ``both``: the node leads both ways. ``scope``: of the column
        of an event, what is in its group counts.
        """
        home = self.home.get(column, column)
        key = f"{home} over {x} {scope}"
        found = self.same.get(key)
        if found is None:
            number = n + part * len(self.tape.code)
            found = self.same[key] = f"c{number + len(self.tape.code)}"
            if both:
                self.out.append(
                    Statement((found,), [f"y = {x} & F{home}", f"{found} = V.union(y, A{home}) if y else 0"])
                )
            elif scope:
                self._remembered(found, x, home, f"union_inside(y, A{home}, {scope!r}", (n, -1 - part))
            else:
                self._remembered(found, x, home, f"union_growing(y, A{home}, {number}", (n, -1 - part))
        return found

    def _gathered(self, n: int, x: str, a: int) -> list[str]:
        """Return expressions for the union of the columns of ``a`` over a set of earlier events, for the node ``n``."""
        if self.kind[a] == BOTH:
            return [self._over(n, x, a, both=True)]
        parts = split_relation(self.tape, self.kind, a)
        out = [self._and(x, self._earlier(s)) for s in parts.sets]
        if parts.reflexive:
            out.append(x)
        for k, rest in enumerate(parts.rest):
            within = split_scope(self.tape, self.kind, rest)
            if n in self.chained:
                out.append(self._chain(n, x, rest))
            elif within is None:
                out.append(self._over(n, x, rest, k))
            else:
                out.append(self._over(n, x, within[0], k, scope=within[1]))
        return out

    def _chain(self, n: int, x: str, rest: int) -> str:
        """Return the same for a chained node."""
        column, own, past = (self.home.get(k, k) for k in (rest, n, self.chained[n]))
        key = f"{column} along {past} over {x}"
        found = self.same.get(key)
        if found is None:
            found = self.same[key] = f"c{n + len(self.tape.code)}"
            self._remembered(found, x, column, f"union_chained(y, A{column}, A{own}, A{past}", (n, -1))
        return found

    def _seq(self, n: int, a: int, b: int) -> tuple[str, str]:
        ca, cb, ra, rb = self.col(a), self.col(b), self.row(a), self.row(b)
        if self.kind[a] == SET:
            col = "B" if cb == "B" and self.member(a) == "True" else self._and(cb, self._members(a))
            return col, self._if(self.member(a), rb)
        if self.kind[b] == SET:
            return self._if(self.member(b), ca), self._and(ra, self._earlier(b))
        if n in self.own:
            return self._and(self._and(ca, cb), "B"), "0"
        col = "0"
        if cb == "B":
            col = ca
        elif cb != "0":
            col = self._or(
                *self._gathered(n, cb, a),
                "0" if ca == "0" else f"({ca} if {cb} & B else 0)",
                "0" if ra == "0" else f"(B if {ra} & {cb} else 0)",
            )
        if rb != "0" and ca not in ("0", "B"):
            self.effect(f"if {rb} and {ca} & ~B: dirty |= {TURNED}")
        left = "0" if ra == "0" else f"V.rows({ra}, A{self.home.get(b, b)})"
        right = "0" if rb == "0" or ca == "0" else rb if ca == "B" else f"({rb} if {ca} & B else 0)"
        return col, "0" if left == right == "0" else f"({self._or(left, right)}) & ~B"
