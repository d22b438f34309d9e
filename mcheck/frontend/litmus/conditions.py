"""The parser of what follows the code: ``locations``, ``filter``, the final condition, ``expect`` lines.

The condition is parsed before the memory is laid out, into terms as written; ``mcheck.frontend.litmus.binding`` gives
them their threads and addresses.
"""

from __future__ import annotations

from dataclasses import field

from mcheck.base.errors import InputError, Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.error_recovery import skip_section
from mcheck.frontend.litmus.expressions import ABOVE_COMPARISON, MAX_DEPTH, parse_constant, parse_expression
from mcheck.frontend.litmus.lexer import END, NAME, NUMBER, Tokens, integer
from mcheck.frontend.litmus.scope import Scope
from mcheck.ir.expr import Const, Name, Reg
from mcheck.ir.program import Expectation

KINDS = ("race", "undefined", "deadlock")
QUANTIFIERS = frozenset(("exists", "forall", "~", "not", "final"))
WORDS = ("exists", "~exists", "forall", "locations", "filter", "expect", "not exists", "final")
PARTS = QUANTIFIERS | {"locations", "filter", "expect"}
_COMPARE = {"=": "==", "==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_WRONG = {"&&": "/\\", "||": "\\/", "&": "/\\", "|": "\\/", "and": "/\\", "or": "\\/", "!": "~"}


@dataclass(frozen=True, slots=True)
class RegWord:
    """``role[number]:reg`` as written; ``number`` ``None`` is the first."""

    role: str
    number: int | None
    reg: str
    span: Span


@dataclass(frozen=True, slots=True)
class MemWord:
    """``name[i]@rank`` as written; ``bracketed`` for ``[x]``, which is a value on either side."""

    name: Name
    bracketed: bool
    span: Span


Word = RegWord | MemWord | Const


@dataclass(frozen=True, slots=True)
class Atom:
    """``left op right``; ``name`` and ``number`` are the two sides as written."""

    op: str
    left: Word
    right: Word
    name: str = ""
    number: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """``op`` is ``and``, ``or``, ``not``, ``true`` or ``false``."""

    op: str
    parts: tuple[Tree, ...] = ()


Tree = Atom | Group


@dataclass(slots=True)
class Tail:
    """The part of a file after the code."""

    kind: str = "none"
    tree: Tree | None = None
    text: str = ""
    filter: Tree | None = None
    locations: list[Word] = field(default_factory=list)
    expectation: Expectation = field(default_factory=Expectation)


def parse_tail(tokens: Tokens, scope: Scope) -> Tail:
    """Parse everything up to the end of the file."""
    found = Tail()
    while tokens.kind != END:
        if tokens.accept(";"):
            continue
        first = tokens.at
        try:
            _part(tokens, scope, found)
        except InputError as error:
            skip_section(tokens, first, PARTS)
            scope.mistakes.record(error, tokens, first)
    return found


def _part(tokens: Tokens, scope: Scope, found: Tail) -> None:
    text = tokens.text
    if text == "locations":
        _locations(tokens, scope, found)
    elif text == "filter":
        tokens.at += 1
        found.filter = parse_formula(tokens, scope)
    elif text == "expect":
        _expect(tokens, found)
    elif text in QUANTIFIERS:
        _condition(tokens, scope, found)
    else:
        raise _stray(tokens, found)


def _stray(tokens: Tokens, found: Tail) -> InputError:
    text = tokens.text
    if text in _WRONG:
        return problem("LIT078", tokens.span(), found=f"'{text}'", expected="/\\ or \\/", hint=f"write {_WRONG[text]}")
    expected = "exists, ~exists, forall, locations, filter or expect"
    hint = suggest(text, WORDS) if tokens.kind == NAME else None
    if found.kind != "none":
        return problem("LIT082", tokens.span(), found=tokens.found(), expected="/\\, \\/, expect or the end", hint=hint)
    return tokens.unexpected(expected, hint)


def _condition(tokens: Tokens, scope: Scope, found: Tail) -> None:
    first = tokens.at
    if found.kind != "none":
        raise problem("LIT076", tokens.span(), hint="join the conditions with /\\ or \\/, or write two tests")
    word = tokens.text
    tokens.at += 1
    kind = "exists" if word == "final" else word
    if word in ("~", "not"):
        tokens.expect("exists")
        kind = "~exists"
    found.tree = parse_formula(tokens, scope)
    found.kind = kind
    found.text = tokens.raw_since(first)
    if word == "final":
        tokens.accept(";")
        tokens.expect("with")
        while tokens.texts[tokens.at + 1] == ":":
            tokens.at += 2
            if not tokens.accept("~"):
                tokens.accept("not")
            tokens.expect("exists")
            tokens.expect(";")


def _locations(tokens: Tokens, scope: Scope, found: Tail) -> None:
    tokens.expect("locations")
    tokens.expect("[")
    while not tokens.accept("]"):
        word = parse_term(tokens, scope)
        if isinstance(word, Const):
            raise problem("LIT011", tokens.span(tokens.at - 1), found="a number", expected="a register or a location")
        found.locations.append(word)
        if not (tokens.accept(";") or tokens.accept(",")) and tokens.text != "]":
            raise tokens.unexpected("';' or ']'")


def _expect(tokens: Tokens, found: Tail) -> None:
    first = tokens.at
    tokens.expect("expect")
    old = found.expectation
    verdict = old.verdict
    kinds: list[str] = []
    while True:
        word = tokens.text
        if word in ("pass", "fail"):
            if verdict not in (None, word):
                raise problem("LIT080", tokens.span(), expected=f"either expect {verdict}, as above, or expect {word}")
            verdict = word
        elif word == "clean" or word in KINDS:
            if word not in kinds:
                kinds.append(word)
            said = {kind for line in (*old.kinds, kinds) for kind in line}
            if "clean" in said and len(said) > 1:
                raise problem("LIT080", tokens.span(), expected="either clean alone or kinds of findings")
        else:
            words = ("pass", "fail", "clean", *KINDS)
            if tokens.kind != NAME:
                raise tokens.unexpected("one of " + ", ".join(words))
            hint = suggest(word, words)
            raise problem("LIT079", tokens.span(), found=f"'{word}'", expected="one of " + ", ".join(words), hint=hint)
        tokens.at += 1
        if tokens.text in ("pass", "fail", "clean", *KINDS):
            raise problem(
                "LIT082", tokens.span(), found=tokens.found(), expected="| between two expectations, or two lines"
            )
        if tokens.text == "-" and tokens.kinds[tokens.at + 1] == NAME:
            dashed = f"'{word}-{tokens.texts[tokens.at + 1]}'"
            words = ("pass", "fail", "clean", *KINDS)
            hint = "write expect clean if there is no error at all"
            first = tokens.at - 1
            tokens.at += 2
            raise problem(
                "LIT079", tokens.span_since(first), found=dashed, expected=f"one of {', '.join(words)}", hint=hint
            )
        if not (tokens.accept("|") or tokens.accept(",")):
            break
    lines = (*old.kinds, tuple(kinds)) if kinds and tuple(kinds) not in old.kinds else old.kinds
    found.expectation = Expectation(verdict, lines, old.span or tokens.span_since(first))


# --- formulas -----------------------------------------------------------------------------------------


def parse_formula(tokens: Tokens, scope: Scope, depth: int = 0) -> Tree:
    r"""``\/`` binds least, then ``/\``, then ``~``."""
    return _joined(tokens, scope, depth, 0)


def _joined(tokens: Tokens, scope: Scope, depth: int, level: int) -> Tree:
    operator = ("\\/", "/\\")[level]
    parts: list[Tree] = []
    while True:
        parts.append(_joined(tokens, scope, depth, 1) if level == 0 else _negated(tokens, scope, depth))
        if not tokens.accept(operator):
            break
    if tokens.text in _WRONG and tokens.text != "!":
        wrong = tokens.text
        raise problem("LIT078", tokens.span(), found=f"'{wrong}'", expected="/\\ or \\/", hint=f"write {_WRONG[wrong]}")
    if len(parts) == 1:
        return parts[0]
    return Group("or" if level == 0 else "and", tuple(parts))


def _negated(tokens: Tokens, scope: Scope, depth: int) -> Tree:
    if depth > MAX_DEPTH:
        raise problem("LIT015", tokens.span(), expected=f"at most {MAX_DEPTH} nested parentheses")
    text = tokens.text
    if text in ("~", "not"):
        tokens.at += 1
        return Group("not", (_negated(tokens, scope, depth + 1),))
    if text == "!":
        raise problem("LIT078", tokens.span(), found="'!'", expected="~", hint="write ~")
    if text == "(":
        tokens.at += 1
        inner = parse_formula(tokens, scope, depth + 1)
        tokens.expect(")", "')', /\\ or \\/")
        return inner
    if text in ("true", "false"):
        tokens.at += 1
        return Group(text)
    first = tokens.at
    left = parse_term(tokens, scope)
    name = tokens.raw_since(first)
    operator = _COMPARE.get(tokens.text)
    if operator is None:
        raise problem("LIT077", tokens.span(), expected="one of == != < <= > >=")
    tokens.at += 1
    first = tokens.at
    right = parse_term(tokens, scope)
    return Atom(operator, left, right, name, tokens.raw_since(first))


def parse_term(tokens: Tokens, scope: Scope) -> Word:
    """A register, a location or a constant expression."""
    at = tokens.at
    if (tokens.kind == NAME or tokens.kind == NUMBER) and (word := _register(tokens, scope)) is not None:
        return word
    bracketed = tokens.accept("[")
    expr = parse_expression(tokens, scope, ABOVE_COMPARISON)
    if bracketed:
        tokens.expect("]")
    span = tokens.span_since(at)
    if isinstance(expr, Const):
        return expr
    if isinstance(expr, Name):
        return MemWord(expr, bracketed, span)
    hint = f"name the thread of the register: P0:{expr.name}" if isinstance(expr, Reg) else None
    raise problem("LIT081", span, expected="a register of a thread, a location or a constant", hint=hint)


def _register(tokens: Tokens, scope: Scope) -> RegWord | None:
    at = tokens.at
    role = tokens.text
    number: int | None = None
    if tokens.kind == NUMBER:
        value = integer(role)
        if tokens.texts[at + 1] != ":" or value is None:
            return None
        role = f"P{value}"
        tokens.at += 1
    elif tokens.texts[at + 1] == ":":
        tokens.at += 1
    elif tokens.texts[at + 1] == "[" and _colon_follows(tokens):
        tokens.at += 2
        number = parse_constant(tokens, scope, "the number of a thread")
        tokens.expect("]")
    else:
        return None
    tokens.expect(":")
    tokens.accept("%")
    reg = tokens.name("a register")
    return RegWord(role, number, reg, tokens.span_since(at))


def _colon_follows(tokens: Tokens) -> bool:
    at = tokens.at + 2
    depth = 1
    while depth and tokens.kinds[at] != END:
        depth += {"[": 1, "]": -1}.get(tokens.texts[at], 0)
        at += 1
    return tokens.texts[at] == ":" if tokens.kinds[at] != END else False
