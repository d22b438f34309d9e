"""Tokens of a cat file to its tree (``mcheck.cat.syntax``).

The grammar is the relational core of herd's::

    model     = [NAME NAME | NAME STRING | NAME | STRING] statement*
    statement = let [rec] binding (and binding)* [in] | [flag] [~] test expr [as NAME] | include STRING
              | show NAME (, NAME)* | show expr as NAME | unshow NAME (, NAME)*
              | procedure NAME(NAME, …) = statement* end | call NAME(expr, …) [as NAME]
    binding   = NAME = expr | NAME(NAME, …) = expr | NAME NAME = expr
    test      = acyclic | irreflexive | empty

Precedence follows herd's grammar (its ``modelParser.mly``), from tight to loose::

    f(x) f x        application
    ^-1             postfix
    + * ?           postfix;  A * B  cartesian product
    ~               prefix
    &
    \\
    ;
    |

``&``, ``;`` and ``|`` group to the right, ``\\`` to the left. ``*`` is the product if an operand follows, else the
closure.
Where herd refuses to choose (``~a+``, ``A * B?``) the reading of Dartagnan is taken: ``~(a+)``, ``(A * B)?``.
Precedence climbing over a list of tokens; see ``mcheck.cat.scanner`` for why there is no parser library here.
"""

from __future__ import annotations

from typing import Final

from mcheck.cat.messages import error, suggest
from mcheck.cat.names import OPTIONS
from mcheck.cat.scanner import END, KEYWORDS, NAME, STRING, Source, Tokens, scan
from mcheck.cat.syntax import (
    Binary,
    Binding,
    Call,
    CallStatement,
    Expr,
    File,
    IncludeStatement,
    LetIn,
    LetStatement,
    Name,
    ProcedureStatement,
    ShowStatement,
    Statement,
    TestStatement,
    Unary,
    Zero,
)
from mcheck.errors import InputError, Span

TESTS: Final = frozenset({"acyclic", "irreflexive", "empty"})
STATEMENTS: Final = frozenset({"let", "flag", "include", "show", "unshow", "procedure", "call", "~"}) | TESTS
# Legal in herd, not here. ``undefined_unless`` is herd's spelling of a requirement on executions.
_FOREIGN: Final = frozenset(
    {"enum", "debug", "match", "with", "forall", "undefined_unless", "instructions", "default", "fun", "try", "if"}
    | {"yield", "begin", "when", "subset"}
)
_OPERAND: Final = frozenset({NAME, "(", "[", "_", "0", "{", "'"})
_ARGUMENT: Final = frozenset({NAME, "(", "[", "_", "0"})
_POSTFIX: Final = frozenset({"+", "?", "*", "^+", "^*", "^?"})
_INFIX: Final = {"|": 1, ";": 2, "\\": 3, "&": 4, "*": 5}
_MAX_DEPTH: Final = 200


def parse(source: Source) -> File:
    """The file's tree, or the first error in it."""
    return _Parser(scan(source)).file()


class _Parser:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.source = tokens.source
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.at = 0
        self.depth = 0

    # --- helpers ---------------------------------------------------------------------------------

    def span(self, index: int | None = None) -> Span:
        index = self.at if index is None else index
        return self.source.span(self.tokens.starts[index], self.tokens.ends[index])

    def found(self) -> str:
        kind = self.kinds[self.at]
        if kind == END:
            return "the end of the file"
        if kind == STRING:
            return f'"{self.texts[self.at]}"'
        return f"the keyword {kind}" if kind in KEYWORDS else self.texts[self.at]

    def wrong(self, expected: str, hint: str | None = None) -> InputError:
        kind = self.kinds[self.at]
        if kind in _FOREIGN or kind in ("{", "'", "++", "||", "->"):
            return error("CAT012", self.span(), what=self.texts[self.at])
        return error("CAT010", self.span(), expected=expected, found=self.found(), hint=hint)

    def take(self, kind: str, expected: str | None = None) -> int:
        if self.kinds[self.at] != kind:
            raise self.wrong(expected or kind)
        self.at += 1
        return self.at - 1

    def close(self, kind: str, opened: int) -> int:
        """The closing bracket of ``opened``; where it is missing, the opening one is the place to look at."""
        if self.kinds[self.at] == kind:
            self.at += 1
            return self.tokens.ends[self.at - 1]
        if self.kinds[self.at] == END or self.kinds[self.at] in STATEMENTS - {"~"}:
            raise error("CAT014", self.span(opened), what=self.texts[opened])
        raise self.wrong(f"an operator or {kind}")

    def name(self, expected: str = "a name") -> Name:
        index = self.take(NAME, expected)
        return Name(self.texts[index], self.tokens.starts[index], self.tokens.ends[index])

    # --- statements ------------------------------------------------------------------------------

    def file(self) -> File:
        name = self.title()
        title_end = self.tokens.ends[self.at - 1] if self.at else 0
        statements = self.statements(END)
        options: dict[str, str] = {}
        for key, value, span in self.tokens.options:
            if key not in OPTIONS:
                raise error("CAT006", span, what=key, hint=suggest(key, list(OPTIONS)))
            if value not in OPTIONS[key]:
                allowed = ", ".join(sorted(OPTIONS[key]))
                raise error("CAT007", span, what=key, value=value, hint=f"it is one of {allowed}")
            options[key] = value
        return File(self.source, name, title_end, statements, tuple(options.items()), self.tokens.doc)

    def title(self) -> str | None:
        """``NAME NAME``, ``NAME STRING``, ``NAME`` or ``STRING``: the last of them names the model."""
        name = None
        if self.kinds[self.at] == NAME:
            self.expect_statement_after_title(self.at)
            name = self.texts[self.at]
            self.at += 1
            if self.kinds[self.at] not in (NAME, STRING):
                return name
        if self.kinds[self.at] in (NAME, STRING):
            name = self.texts[self.at]
            self.at += 1
        return name

    def expect_statement_after_title(self, index: int) -> None:
        """A first line such as ``lett x = po`` is a misspelt statement rather than a title."""
        after = index + 1
        while self.kinds[after] in (NAME, STRING) and after < index + 2:
            after += 1
        if self.kinds[after] != END and self.kinds[after] not in STATEMENTS | _FOREIGN:
            raise self.no_statement()

    def no_statement(self) -> InputError:
        if self.kinds[self.at] not in (NAME, STRING):
            return self.wrong("an operator or the next statement")
        hint = suggest(self.texts[self.at], sorted(STATEMENTS - {"~"}))
        return error("CAT011", self.span(), what=self.found(), hint=hint)

    def statements(self, stop: str) -> tuple[Statement, ...]:
        result: list[Statement] = []
        while self.kinds[self.at] != stop:
            result.append(self.statement())
        return tuple(result)

    def statement(self) -> Statement:
        kind = self.kinds[self.at]
        if kind == "let":
            return self.let()
        if kind in TESTS or kind == "flag" or kind == "~":
            return self.test()
        if kind == "show" or kind == "unshow":
            return self.show()
        if kind == "include":
            self.at += 1
            index = self.take(STRING, "the file's name in quotes")
            keyword, start, end = self.tokens.starts[index - 1], self.tokens.starts[index], self.tokens.ends[index]
            return IncludeStatement(self.texts[index], keyword, start, end)
        if kind == "procedure":
            return self.procedure()
        if kind == "call":
            return self.call_statement()
        if kind in _FOREIGN:
            raise self.wrong("a statement")
        if kind == END:
            raise self.wrong("end")
        raise self.no_statement()

    def let(self) -> LetStatement:
        self.at += 1
        recursive = self.kinds[self.at] == "rec"
        if recursive:
            self.at += 1
        bindings = self.bindings()
        if self.kinds[self.at] == "in":  # herd allows it after a definition
            self.at += 1
        return LetStatement(recursive, bindings)

    def bindings(self) -> tuple[Binding, ...]:
        result = [self.binding()]
        while self.kinds[self.at] == "and":
            self.at += 1
            result.append(self.binding())
        if self.kinds[self.at] == "when":
            raise self.wrong("a statement")
        return tuple(result)

    def binding(self) -> Binding:
        if self.kinds[self.at] == "(":
            raise error("CAT012", self.span(), what="a definition of a tuple")
        name = self.name()
        params = None
        if self.kinds[self.at] != "=":
            params = self.parameters(f"= or the parameters of {name.text}")
        self.take("=")
        return Binding(name, params, self.expr())

    def parameters(self, expected: str) -> tuple[Name, ...]:
        """``(x, y)`` or ``x``."""
        if self.kinds[self.at] != "(":
            return (self.name(expected),)
        opened = self.at
        self.at += 1
        names = [self.name("a parameter")]
        while self.kinds[self.at] == ",":
            self.at += 1
            names.append(self.name("a parameter"))
        self.close(")", opened)
        return tuple(names)

    def test(self) -> TestStatement:
        first = self.at
        flag = self.kinds[self.at] == "flag"
        if flag:
            self.at += 1
        negated = self.kinds[self.at] == "~"
        if negated:
            self.at += 1
        test = self.kinds[self.at]
        if test not in TESTS:
            raise self.wrong("acyclic, irreflexive or empty")
        self.at += 1
        body = self.expr()
        end = self.tokens.ends[self.at - 1]
        return TestStatement(test, negated, flag, body, self.label(), self.tokens.starts[first], end)

    def label(self) -> str | None:
        if self.kinds[self.at] != "as":
            return None
        self.at += 1
        return self.name().text

    def show(self) -> ShowStatement:
        hide = self.kinds[self.at] == "unshow"
        self.at += 1
        items: list[tuple[Expr, str]] = []
        while True:
            shown = self.name() if hide else self.expr()
            if self.kinds[self.at] == "as" and not hide:
                self.at += 1
                items.append((shown, self.name().text))
            elif isinstance(shown, Name):
                items.append((shown, shown.text))
            else:
                raise self.wrong("as and a name for this expression")
            if self.kinds[self.at] != ",":
                return ShowStatement(hide, tuple(items))
            self.at += 1

    def procedure(self) -> ProcedureStatement:
        self.at += 1
        if self.kinds[self.at] == "rec":
            raise error("CAT012", self.span(), what="procedure rec")
        name = self.name()
        empty = self.kinds[self.at] == "(" and self.kinds[self.at + 1] == ")"
        params: tuple[Name, ...] = ()
        if empty:
            self.at += 2
        else:
            params = self.parameters("the parameters")
        self.take("=")
        body = self.statements("end")
        self.at += 1
        return ProcedureStatement(name, params, body)

    def call_statement(self) -> CallStatement:
        first = self.at
        self.at += 1
        name = self.name("the procedure's name")
        args: tuple[Expr, ...] = ()
        if self.kinds[self.at] == "(" and self.kinds[self.at + 1] == ")":
            self.at += 2
        elif self.kinds[self.at] in _ARGUMENT:
            args, _ = self.arguments()
        end = self.tokens.ends[self.at - 1]
        return CallStatement(name, args, self.label(), self.tokens.starts[first], end)

    # --- expressions -----------------------------------------------------------------------------

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
                if minimum > 5:
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
        end = self.tokens.ends[self.at]
        if kind == NAME:
            name = Name(self.texts[self.at], start, end)
            self.at += 1
            if self.kinds[self.at] not in _ARGUMENT:
                return name
            args, end = self.arguments()
            return Call(name, args, start, end)
        if kind == "~":
            self.at += 1
            arg = self.expr(5)
            return Unary("~", arg, start, arg.end)
        if kind == "let":
            return self.let_in()
        return self.simple()

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
        if kind == "(":
            self.at += 1
            inner = self.expr()
            closed = self.close(")", opened)
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
        args = [self.expr()]
        while self.kinds[self.at] == ",":
            self.at += 1
            args.append(self.expr())
        return tuple(args), self.close(")", opened)

    def let_in(self) -> LetIn:
        start = self.tokens.starts[self.at]
        self.at += 1
        if self.kinds[self.at] == "rec":
            raise error("CAT012", self.span(), what="let rec inside an expression")
        bindings = self.bindings()
        self.take("in")
        body = self.expr()
        return LetIn(bindings, body, start, body.end)


__all__ = ["parse"]
