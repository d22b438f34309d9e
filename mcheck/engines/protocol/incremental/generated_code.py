"""The text of the function that computes the relations of one new event, node by node of a tape.

Of every relation two sets are computed, each an integer whose bits are events: ``c`` those that it relates to the new
event (which may be among them), ``r`` the earlier ones that the new event is related to. Most relations only lead
forward, so that ``r`` is empty. A set is kept as ``s``, whether the new event is in it.

What is known of the event beforehand (``Known``) is folded into the text, what comes out twice is computed once, and
what nothing uses is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from mcheck.base.errors import Unsupported
from mcheck.cat.algebra.tape import Tape
from mcheck.engines.protocol.incremental.composition import parts_of
from mcheck.engines.protocol.incremental.kinds import BOTH, DYNAMIC, NOTHING, ONE_WAY, SET

EVERY = frozenset(("ALL", "OTHERS"))
"""All events, and all but the new one."""
VARIABLE = re.compile(r"\b[crs]\d+\b")
KEPT = re.compile(r"\b([AFM])(\d+)\b")


UNIONS = 4096
"""More than a model asks of an event."""


class Known(NamedTuple):
    """What all events of a kind have in common: the sets that they are in, the base relations of which edges come with
    them (``back``: lead from them to earlier events), those of the others that relate them to nothing.
    """

    sets: frozenset[str]
    edges: frozenset[str]
    back: frozenset[str]
    alone: frozenset[str]


@dataclass(slots=True)
class Statement:
    """Some lines, the variables that they set, whether they are needed whatever uses these."""

    sets: tuple[str, ...]
    lines: list[str]
    effect: bool = False


@dataclass(slots=True)
class Writer:
    """Writes the nodes that are ``wanted``. By node, ``c`` and ``r`` are what its sets are called: a variable, ``0`` or
    ``B``, the new event itself; ``s`` is a variable, ``True`` or ``False``.
    """

    tape: Tape
    kind: list[str]
    wanted: set[int]
    known: Known | None = None
    noted: bool = False
    """Whether the event is one of those that are kept already, which are the earlier ones otherwise."""
    chained: dict[int, int] = field(default_factory=dict)
    """The nodes of which only the latest events count (``mcheck.engines.protocol.incremental.composition.chains``)."""
    home: dict[int, int] = field(default_factory=dict)
    """For nodes whose sets of all events are kept, the node under which they are: equal ones are kept once."""
    kept: frozenset[int] = frozenset()
    """The nodes for which ``home`` is to be found out."""
    out: list[Statement] = field(default_factory=list)
    c: dict[int, str] = field(default_factory=dict)
    r: dict[int, str] = field(default_factory=dict)
    s: dict[int, str] = field(default_factory=dict)
    own: frozenset[int] = frozenset()
    """Nodes ``a; b`` of which only is asked whether they lead from the new event to itself."""
    universal: set[int] = field(default_factory=set)
    """Sets that every event is in, whatever its kind."""
    unions: dict[tuple[int, int], int] = field(default_factory=dict)
    """The number of each union that the last one of a thread is remembered of: by node and, of a closure, member."""
    same: dict[str, str] = field(default_factory=dict)
    """Variables by the text of what they are."""

    def nodes(self) -> None:
        """Writes all."""
        wanted = sorted(self.wanted)
        groups: dict[int, list[int]] = {}
        for n in wanted:
            groups.setdefault(self.tape.group_of[n], []).append(n)
        for n in wanted:
            group = self.tape.group_of[n]
            if group < 0:
                self._node(n)
                self._settle(n)
            elif n == groups[group][-1]:  # what does not depend on the recursion stands between its nodes
                self._group(group, groups[group])

    def _settle(self, n: int) -> None:
        """Finds out under which node the sets of one are kept."""
        if n not in self.kept or n in self.home:
            return
        if self.kind[n] == SET and self.s[n] == "True":
            self.universal.add(n)
        key = f"members {self.s[n]}" if self.kind[n] == SET else f"columns {self.c[n]} {self.row(n)}"
        self.home[n] = int(self.same.setdefault(key, str(n)))

    def col(self, n: int) -> str:
        """What stands for the ``c`` of a node."""
        if n < 0 or self.kind[n] == NOTHING or n not in self.wanted:
            return "0"
        if self.kind[n] == SET:
            s = self.s[n]
            return "B" if s == "True" else "0" if s == "False" else f"(B if {s} else 0)"
        return self.c[n]

    def row(self, n: int) -> str:
        """What stands for the ``r`` of a node."""
        return self.r[n] if n >= 0 and n in self.wanted and self.kind[n] == BOTH else "0"

    def member(self, n: int) -> str:
        """What stands for the ``s`` of a node."""
        return "False" if self.kind[n] == NOTHING or n not in self.wanted else self.s[n]

    def effect(self, *lines: str) -> None:
        """Lines that are needed for what they do."""
        self.out.append(Statement((), list(lines), effect=True))

    def text(self, tail: Iterable[str]) -> list[str]:
        """The body, with the lines that end it: what is used of what was written, and first what has been kept."""
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
        """What makes of a set that of its earlier events."""
        return " & ~B" if self.noted else ""

    # --- expressions ----------------------------------------------------------------------------------------

    def _be(self, name: str, text: str) -> str:
        """A variable that is ``text``; the one that is already, if there is one."""
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
        """Whether the new event is in a set, as a condition."""
        return "True" if a == "B" else "False" if a == "0" else f"bool({a} & B)"

    def _if(self, condition: str, a: str) -> str:
        if condition == "False" or a == "0":
            return "0"
        return a if condition == "True" else f"({a} if {condition} else 0)"

    def _members(self, n: int) -> str:
        """All events that are in a set."""
        s = self.member(n)
        m = self._earlier(n)
        if m == "OTHERS":
            return "ALL"
        return f"({m} | B)" if s == "True" else m if s == "False" else f"(({m} | B) if {s} else {m})"

    def _earlier(self, n: int) -> str:
        """All earlier events that are in a set."""
        return "OTHERS" if n in self.universal else f"M{self.home.get(n, n)}"

    # --- nodes ----------------------------------------------------------------------------------------------

    def _group(self, group: int, members: list[int]) -> None:
        """Recursive definitions: from nothing until nothing changes."""
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
        """The texts of the two sets of a node."""
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
                if ra != "0":  # a way leads on from where it leads back to
                    self.effect(f"if {ra}: dirty = 1")
                return self._or(ca, *(self._closed(n, k) for k in self._members_of(a)), own), ra
        raise Unsupported(f"the operator {i.op} of a model")

    def _members_of(self, n: int) -> list[int]:
        """The relations that one is the union of."""
        i = self.tape.code[n]
        return [*self._members_of(i.a), *self._members_of(i.b)] if i.op == "or" and self.kind[n] != SET else [n]

    def _closed(self, n: int, member: int) -> str:
        """What is before the events that a member of the closure ``n`` relates to the new one: of some members that
        grows along a thread, of others it is the same for several threads.
        """
        x = self.col(member)
        if x in ("0", "B"):
            return "0"
        home = self.home.get(n, n)
        found = self.same.get(f"{home} before {x}")
        if found is None:
            found = self.same[f"{home} before {x}"] = f"c{n}{member:04}"
            self._remembered(found, x, home, f"closed(y, A{home}, {home}", (n, member))
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
        """A variable for what a call makes of a set ``y`` of earlier events with something in a column, unless the last
        one of this thread was the same.
        """
        number = self.unions.setdefault(which, len(self.unions))
        text = f"(y and (k[1] if (k := G(T + {number}, NEVER))[0] == y else V.{call}, T + {number}, k)))"
        self.out.append(Statement((name,), [f"y = {x} & F{column}", f"{name} = {text}"]))

    def _over(self, n: int, x: str, column: int, *, both: bool) -> str:
        """A variable for the union of what is kept of a node over a set of earlier events; ``both``: of one that leads
        both ways.
        """
        home = self.home.get(column, column)
        key = f"{home} over {x}"
        found = self.same.get(key)
        if found is None:
            found = self.same[key] = f"c{n + len(self.tape.code)}"
            if both:
                self.out.append(
                    Statement((found,), [f"y = {x} & F{home}", f"{found} = V.union(y, A{home}) if y else 0"])
                )
            else:
                self._remembered(found, x, home, f"over(y, A{home}, {n}", (n, -1))
        return found

    def _gathered(self, n: int, x: str, a: int) -> list[str]:
        """The union of what is kept of ``a`` over a set of earlier events, for the node ``n``."""
        if self.kind[a] == BOTH:
            return [self._over(n, x, a, both=True)]
        parts = parts_of(self.tape, self.kind, a)
        out = [self._and(x, self._earlier(s)) for s in parts.sets]
        if parts.reflexive:
            out.append(x)
        if parts.rest >= 0:
            out.append(self._chain(n, x, parts.rest) if n in self.chained else self._over(n, x, parts.rest, both=False))
        return out

    def _chain(self, n: int, x: str, rest: int) -> str:
        """The same of a node that is chained."""
        column, own, past = (self.home.get(k, k) for k in (rest, n, self.chained[n]))
        key = f"{column} along {past} over {x}"
        found = self.same.get(key)
        if found is None:
            found = self.same[key] = f"c{n + len(self.tape.code)}"
            self._remembered(found, x, column, f"along(y, A{column}, A{own}, A{past}", (n, -1))
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
            self.effect(f"if {rb} and {ca} & ~B: dirty = 1")
        left = "0" if ra == "0" else f"V.rows({ra}, A{self.home.get(b, b)})"
        right = "0" if rb == "0" or ca == "0" else rb if ca == "B" else f"({rb} if {ca} & B else 0)"
        return col, "0" if left == right == "0" else f"({self._or(left, right)}) & ~B"
