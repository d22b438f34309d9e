"""Tokens of a cat file to its tree (``mcheck.cat.syntax``).

The grammar is herd's, without what belongs to bell files and without statements over sets of sets::

    model     = [NAME NAME | NAME STRING | NAME | STRING] statement*
    statement = let [rec] binding (and binding)* [in] | [flag | undefined_unless] [~] test expr [as NAME]
              | include STRING | with NAME from expr | if condition [then] statement* [else statement*] end
              | show NAME (, NAME)* | show expr as NAME | unshow NAME (, NAME)*
              | procedure NAME(NAME, …) = statement* end | call NAME(expr, …) [as NAME]
    binding   = NAME = expr | NAME(NAME, …) = expr | NAME NAME = expr | (NAME, …) = expr
    test      = acyclic | irreflexive | empty

Expressions are the subject of ``mcheck.cat.expressions``.
"""

from __future__ import annotations

from typing import Final

from mcheck.base.errors import InputError
from mcheck.cat.cursor import FOREIGN, STATEMENTS, TESTS
from mcheck.cat.expressions import ARGUMENT, Expressions
from mcheck.cat.messages import error, suggest
from mcheck.cat.names import OPTIONS
from mcheck.cat.scanner import END, NAME, STRING, Source, scan
from mcheck.cat.syntax import (
    CallStatement,
    Expr,
    File,
    IfStatement,
    IncludeStatement,
    LetStatement,
    Name,
    ProcedureStatement,
    ShowStatement,
    Statement,
    TestStatement,
    WithStatement,
)

_TITLE_OPTIONS: Final = frozenset({"withco", "withoutco"})


def parse(source: Source) -> File:
    """The file's tree, or the first error in it."""
    return _Parser(scan(source)).file()


class _Parser(Expressions):
    """The rules of statements."""

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
        return File(
            self.source, name, title_end, statements, tuple(options.items()), self.tokens.doc, frozenset(self.texts)
        )

    def title(self) -> str | None:
        """``NAME NAME``, ``NAME STRING``, ``NAME`` or ``STRING``: the last of them names the model.

        Older files say ``withoutco`` after it: that they order writes by themselves.
        """
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
        if self.kinds[self.at] == NAME and self.texts[self.at] in _TITLE_OPTIONS:
            self.at += 1
        return name

    def expect_statement_after_title(self, index: int) -> None:
        """A first line such as ``lett x = po`` is a misspelt statement rather than a title."""
        after = index + 1
        while self.kinds[after] in (NAME, STRING) and after < index + 2:
            after += 1
        if self.kinds[after] != END and self.kinds[after] not in STATEMENTS | FOREIGN:
            raise self.no_statement()

    def no_statement(self) -> InputError:
        if self.kinds[self.at] not in (NAME, STRING):
            return self.wrong("an operator or the next statement")
        hint = suggest(self.texts[self.at], sorted(STATEMENTS - {"~"}))
        return error("CAT011", self.span(), what=self.found(), hint=hint)

    def statements(self, *stops: str) -> tuple[Statement, ...]:
        result: list[Statement] = []
        while self.kinds[self.at] not in stops:
            result.append(self.statement())
        return tuple(result)

    def statement(self) -> Statement:
        kind = self.kinds[self.at]
        if kind == "let":
            return self.let()
        if kind in TESTS or kind in ("flag", "undefined_unless", "~"):
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
        if kind == "with":
            return self.with_from()
        if kind == "if":
            return self.if_statement()
        if kind in FOREIGN:
            raise self.wrong("a statement")
        if kind == END:
            raise self.wrong("end")
        raise self.no_statement()

    def let(self) -> LetStatement:
        self.at += 1
        recursive, bindings = self.bindings()
        if self.kinds[self.at] == "in":  # herd allows it after a definition
            self.at += 1
        return LetStatement(recursive, bindings)

    def with_from(self) -> WithStatement:
        start = self.tokens.starts[self.at]
        self.at += 1
        name = self.name()
        self.take("from")
        body = self.expr()
        return WithStatement(name, body, start, body.end)

    def if_statement(self) -> IfStatement:
        self.at += 1
        condition = self.condition()
        if self.kinds[self.at] == "then":
            self.at += 1
        yes = self.statements("else", "end")
        no: tuple[Statement, ...] = ()
        if self.kinds[self.at] == "else":
            self.at += 1
            no = self.statements("end")
        self.at += 1
        return IfStatement(condition, yes, no)

    def test(self) -> TestStatement:
        first = self.at
        unless = self.kinds[self.at] == "undefined_unless"
        flag = unless or self.kinds[self.at] == "flag"
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
        return TestStatement(test, negated != unless, flag, body, self.label(), self.tokens.starts[first], end)

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
        elif self.kinds[self.at] in ARGUMENT:
            args, _ = self.arguments()
        end = self.tokens.ends[self.at - 1]
        return CallStatement(name, args, self.label(), self.tokens.starts[first], end)


__all__ = ["parse"]
