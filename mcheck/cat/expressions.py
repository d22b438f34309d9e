"""Expressions of cat: the part of the grammar below statements.

Precedence follows herd's grammar (its ``modelParser.mly``), from tight to loose::

    f(x) f x        application
    ^-1             postfix
    + * ?           postfix;  A * B  cartesian product
    ~               prefix
    &
    \\
    ;
    ++
    |
    let fun try if  as far as they reach

``&``, ``;``, ``++`` and ``|`` group to the right, ``\\`` to the left. ``*`` is the product if an operand follows, else
the closure.
Where herd refuses to choose (``~a+``, ``A * B?``) the reading of Dartagnan is taken: ``~(a+)``, ``(A * B)?``.
Precedence climbing over a list of tokens; see ``mcheck.cat.scanner`` for why there is no parser library here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mcheck.base.errors import InputError
from mcheck.cat.cursor import TESTS, Cursor
from mcheck.cat.messages import error
from mcheck.cat.scanner import NAME, STRING
from mcheck.cat.syntax import (
    Binary,
    Binding,
    Call,
    Condition,
    Expr,
    Fun,
    If,
    Items,
    LetIn,
    Match,
    Name,
    Try,
    Unary,
    Zero,
)

_OPERAND: Final = frozenset({NAME, "(", "[", "_", "0", "{", "'"})
ARGUMENT: Final = frozenset({NAME, "(", "[", "_", "0", "{"})
_POSTFIX: Final = frozenset({"+", "?", "*", "^+", "^*", "^?"})
_INFIX: Final = {"|": 1, "++": 2, ";": 3, "\\": 4, "&": 5, "*": 6}
_PRODUCT: Final = _INFIX["*"]
_MAX_DEPTH: Final = 200


class Expressions(Cursor):
    """The rules of expressions, definitions and conditions."""

    def expr(self, minimum: int = 0) -> Expr:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise error("CAT015", self.span())
        left = self.operand()
        kinds = self.kinds
        start = left.start
        while True:
            kind = kinds[self.at]
            if kind == "^-1":
                self.at += 1
                left = Unary("^-1", left, start, self.tokens.ends[self.at - 1])
            elif kind in _POSTFIX and (kind != "*" or not self.product_follows()):
                if minimum > _PRODUCT:
                    break
                self.at += 1
                left = Unary(kind[-1], left, start, self.tokens.ends[self.at - 1])
            elif kind in _INFIX:
                power = _INFIX[kind]
                if power < minimum:
                    break
                self.at += 1
                # \ and * group to the left, the others to the right
                right = self.expr(power + 1 if kind in "\\*" else power)
                left = Binary(kind, left, right, start, right.end)
            elif kind == "-1" or kind == "^":
                raise error("CAT013", self.span())
            else:
                break
        self.depth -= 1
        return left

    def product_follows(self) -> bool:
        """Is the ``*`` here followed by an operand? A ``~`` before a test starts the next statement."""
        follower = self.kinds[self.at + 1]
        if follower == "~":
            return self.kinds[self.at + 2] not in TESTS
        return follower in _OPERAND

    def operand(self) -> Expr:
        kind = self.kinds[self.at]
        start = self.tokens.starts[self.at]
        if kind == NAME:
            return self.application(self.name())
        if kind == "~":
            self.at += 1
            arg = self.expr(_PRODUCT)
            return Unary("~", arg, start, arg.end)
        if kind == "let":
            return self.let_in()
        if kind == "fun":
            self.at += 1
            params = self.parameters("the parameters")
            self.take("->")
            body = self.expr()
            return Fun(params, body, start, body.end)
        if kind == "try":
            self.at += 1
            body = self.expr()
            self.take("with", "an operator or with")
            other = self.expr()
            return Try(body, other, start, other.end)
        if kind == "if":
            self.at += 1
            condition = self.condition()
            self.take("then")
            yes = self.expr()
            self.take("else", "an operator or else")
            no = self.expr()
            return If(condition, yes, no, start, no.end)
        if kind == "match":
            return self.match()
        return self.simple()

    def application(self, name: Name) -> Name | Call:
        """``name`` with all its arguments: ``f x y`` gives ``y`` to what ``f x`` is."""
        function: Name | Call = name
        while self.kinds[self.at] in ARGUMENT:
            args, end = self.arguments()
            function = Call(function, args, name.start, end)
        return function

    def simple(self) -> Expr:
        kind = self.kinds[self.at]
        opened = self.at
        start = self.tokens.starts[opened]
        end = self.tokens.ends[opened]
        if kind == "_":
            self.at += 1
            return Name("_", start, end)
        if kind == "0":
            self.at += 1
            return Zero(start, end)
        if kind == "(" or kind == "{":
            self.at += 1
            closing = ")" if kind == "(" else "}"
            items = self.listed(closing, opened)
            closed = self.tokens.ends[self.at - 1]
            if kind == "{" or len(items) != 1:
                return Items(kind == "{", items, start, closed)
            (inner,) = items
            if not isinstance(inner, Name):  # messages quote it with its parentheses
                inner.start = start
                inner.end = closed
            return inner
        if kind == "[":
            self.at += 1
            inner = self.expr()
            return Unary("[]", inner, start, self.close("]", opened))
        raise self.wrong("an expression")

    def arguments(self) -> tuple[tuple[Expr, ...], int]:
        """``(e, e)`` or one simple argument; and where it ends."""
        if self.kinds[self.at] == NAME:
            name = self.name()
            return (name,), name.end
        if self.kinds[self.at] != "(":
            simple = self.simple()
            return (simple,), simple.end
        opened = self.at
        self.at += 1
        args = self.listed(")", opened)
        return args, self.tokens.ends[self.at - 1]

    def listed(self, closing: str, opened: int) -> tuple[Expr, ...]:
        """``e, e`` up to the bracket that closes the one at ``opened``."""
        items: list[Expr] = []
        if self.kinds[self.at] != closing:
            items.append(self.expr())
            while self.kinds[self.at] == ",":
                self.at += 1
                items.append(self.expr())
        self.close(closing, opened)
        return tuple(items)

    def let_in(self) -> LetIn:
        start = self.tokens.starts[self.at]
        self.at += 1
        recursive, bindings = self.bindings()
        self.take("in")
        body = self.expr()
        return LetIn(recursive, bindings, body, start, body.end)

    def match(self) -> Match:
        """Of a set: its clauses in either order."""
        start = self.tokens.starts[self.at]
        self.at += 1
        subject = self.expr()
        self.take("with", "an operator or with")
        if self.kinds[self.at] == "||":
            self.at += 1
        empty: Expr | None = None
        some: tuple[Name, Name, Expr] | None = None
        for number in range(2):
            if number:
                self.take("||", "an operator or || and the other case")
            if empty is None and self.kinds[self.at] == "{":
                self.at += 1
                self.take("}")
                self.take("->")
                empty = self.expr()
            else:
                if self.kinds[self.at] == "'":
                    raise self.wrong("a case")
                element = self.pattern("{} or an element")
                self.take("++")
                rest = self.pattern("the rest of the set")
                self.take("->")
                some = (element, rest, self.expr())
        if empty is None or some is None:
            raise self.wrong("both {} and an element with the rest of the set")
        end = self.tokens.ends[self.take("end", "an operator or end")]
        return Match(subject, empty, *some, start, end)

    # --- definitions -----------------------------------------------------------------------------

    def bindings(self) -> tuple[bool, tuple[Binding, ...]]:
        """What stands after ``let``: whether it is recursive, and the definitions."""
        recursive = self.kinds[self.at] == "rec"
        if recursive:
            self.at += 1
        result = [self.binding()]
        while self.kinds[self.at] == "and":
            self.at += 1
            result.append(self.binding())
        if self.kinds[self.at] == "when":
            raise self.wrong("a statement")
        return recursive, tuple(result)

    def binding(self) -> Binding:
        if self.kinds[self.at] == "(":
            names = self.parameters("a name")
            self.take("=")
            return Binding(names, None, self.expr())
        name = self.name()
        params = None
        if self.kinds[self.at] != "=":
            params = self.parameters(f"= or the parameters of {name.text}")
        self.take("=")
        return Binding((name,), params, self.expr())

    def parameters(self, expected: str) -> tuple[Name, ...]:
        """``(x, y)`` or ``x``."""
        if self.kinds[self.at] != "(":
            return (self.pattern(expected),)
        opened = self.at
        self.at += 1
        names = [self.pattern("a parameter")]
        while self.kinds[self.at] == ",":
            self.at += 1
            names.append(self.pattern("a parameter"))
        self.close(")", opened)
        return tuple(names)

    def pattern(self, expected: str) -> Name:
        """A name, or ``_`` for what is not needed."""
        if self.kinds[self.at] == "_":
            self.at += 1
            return Name("_", self.tokens.starts[self.at - 1], self.tokens.ends[self.at - 1])
        return self.name(expected)

    # --- conditions ------------------------------------------------------------------------------

    def condition(self) -> Condition:
        """``||`` of ``&&`` of what is not composed."""
        return self.conditions("||", lambda: self.conditions("&&", self.lone_condition))

    def conditions(self, op: str, part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self.kinds[self.at] == op:
            self.at += 1
            parts.append(part())
        return parts[0] if len(parts) == 1 else Condition(op, "", tuple(parts), (), parts[0].start, parts[-1].end)

    def lone_condition(self) -> Condition:
        start = self.tokens.starts[self.at]
        kind = self.kinds[self.at]
        if kind == "not":
            self.at += 1
            inner = self.lone_condition()
            return Condition("not", "", (inner,), (), start, inner.end)
        if kind == STRING:
            self.at += 1
            return Condition("variant", self.texts[self.at - 1], (), (), start, self.tokens.ends[self.at - 1])
        if kind == "(":
            inside = self.condition_in_parentheses()
            if inside is not None:
                return inside
        left = self.expr()
        op = self.kinds[self.at]
        if op not in ("=", "subset", "in"):
            raise self.wrong("=, subset or in")
        self.at += 1
        right = self.expr()
        return Condition(op, "", (), (left, right), start, right.end)

    def condition_in_parentheses(self) -> Condition | None:
        """The condition between the parentheses here, or nothing where they hold an expression."""
        opened, depth = self.at, self.depth
        self.at += 1
        try:
            inside = self.condition()
            self.close(")", opened)
        except InputError:
            self.at, self.depth = opened, depth
            return None
        return inside
