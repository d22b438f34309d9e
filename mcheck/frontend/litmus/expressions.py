"""The parser of expressions: C's operators and precedence, constants folded.

Depth and length are limited, so that neither this parser nor whatever walks over an expression later can run out of
stack; so are the sizes of constants.
"""

from __future__ import annotations

from mcheck.base.errors import InputError
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.lexer import MAX_LITERAL, NAME, NUMBER, Tokens, integer
from mcheck.frontend.litmus.scope import SPECIALS, VECTORS, Scope
from mcheck.ir.expr import Binary, Const, Expr, Name, Reg, Special, Unary, apply_unary
from mcheck.ir.resolve import Undefined, checked_binary

PRECEDENCE: dict[str, int] = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
ABOVE_COMPARISON = 8
MAX_DEPTH = 60
MAX_OPERATORS = 150


def parse_expression(tokens: Tokens, scope: Scope, minimum: int = 1) -> Expr:
    """Parse an expression whose binary operators bind at least as tightly as ``minimum``."""
    outermost = tokens.depth == 0
    if outermost:
        tokens.operators = 0
    tokens.depth += 1
    if tokens.depth > MAX_DEPTH:
        raise _too_long(tokens)
    left = _unary(tokens, scope)
    texts = tokens.texts
    while (level := PRECEDENCE.get(texts[tokens.at], 0)) >= minimum:
        at = tokens.at
        operator = texts[at]
        tokens.at = at + 1
        tokens.operators += 1
        if tokens.operators > MAX_OPERATORS:
            raise _too_long(tokens)
        right = parse_expression(tokens, scope, level + 1)
        left = _fold_binary(tokens, at, operator, left, right)
    tokens.depth -= 1
    return left


def parse_constant(tokens: Tokens, scope: Scope, what: str) -> int:
    """Parse an expression that must be a constant known while parsing."""
    first = tokens.at
    value = parse_expression(tokens, scope)
    if not isinstance(value, Const):
        raise problem("LIT016", tokens.span_since(first), what=what, expected="a number or a const")
    return value.value


def _too_long(tokens: Tokens) -> InputError:
    return problem(
        "LIT015",
        tokens.span(),
        expected=f"at most {MAX_DEPTH} nested parentheses and {MAX_OPERATORS} operators",
    )


def _unary(tokens: Tokens, scope: Scope) -> Expr:
    text = tokens.texts[tokens.at]
    if text in ("-", "+", "~", "!"):
        tokens.at += 1
        tokens.depth += 1
        if tokens.depth > MAX_DEPTH:
            raise _too_long(tokens)
        operand = _unary(tokens, scope)
        tokens.depth -= 1
        return _fold_unary(text, operand)
    return _primary(tokens, scope)


def _primary(tokens: Tokens, scope: Scope) -> Expr:
    at = tokens.at
    kind = tokens.kinds[at]
    text = tokens.texts[at]
    if kind == NUMBER:
        tokens.at = at + 1
        return Const(parse_number(tokens, at))
    if kind == NAME and text != "_":
        if text[0] == ".":
            raise tokens.unexpected("a value")
        tokens.at = at + 1
        return parse_name(tokens, scope, at)
    if text == "%" and tokens.kinds[at + 1] == NAME:
        tokens.at = at + 2
        name = tokens.texts[at + 1]
        if name in SPECIALS:
            return Special(name, tokens.span(at + 1))
        if "." in name or name in VECTORS:  # the vector itself is no operand (PTX ISA 9.0, 10.1)
            meant = f"{name}.x" if name in VECTORS else name
            hint = suggest("%" + meant, ["%" + s for s in SPECIALS])
            raise problem("LIT063", tokens.span(at + 1), name=name, hint=hint)
        return Reg(name)
    if text == "(":
        tokens.at = at + 1
        inner = parse_expression(tokens, scope)
        tokens.expect(")")
        return inner
    raise tokens.unexpected("a value: a register, a name or a number")


def _bits_hint(text: str) -> str | None:
    """How a number with a decimal point is written in single precision (PTX ISA 4.5.2)."""
    from struct import pack  # seldom needed

    try:
        bits = pack(">f", float(text)).hex().upper()
    except (ValueError, OverflowError):
        return None
    return f"write a floating-point value as its bits: 0f{bits}"


def parse_number(tokens: Tokens, at: int) -> int:
    """The value of number token ``at``."""
    text = tokens.texts[at]
    value = integer(text)
    if value is None:
        raise problem(
            "LIT013", tokens.span(at), found=f"'{text}'", expected="a decimal or hexadecimal integer",
            hint=_bits_hint(text) if "." in text else None,
        )  # fmt: skip
    if value > MAX_LITERAL:
        raise problem("LIT014", tokens.span(at), expected="at most 64 bits")
    return value


def parse_name(tokens: Tokens, scope: Scope, at: int) -> Expr:
    """Parse the rest of the name at token ``at`` (already consumed): its indices and its rank."""
    name = tokens.texts[at]
    texts = tokens.texts
    if scope.is_register(name):
        return Reg(name)
    value = scope.constant(name)
    if value is not None:
        if texts[tokens.at] in ("[", "@"):
            raise problem("LIT064", tokens.span(at), name=name)
        return Const(value)
    if name == "WARP_SZ" and not scope.declares(name):
        return Const(32)
    if name in scope.derived and not scope.is_symbol(name):
        return scope.derived[name]
    if name in scope.functions and not scope.is_symbol(name):
        return _called(tokens, scope, at)
    scope.check(tokens, at)
    indices: tuple[Expr, ...] = ()
    while texts[tokens.at] == "[":
        tokens.at += 1
        indices = (*indices, parse_expression(tokens, scope))
        tokens.expect("]")
        if len(indices) > MAX_DEPTH:
            raise _too_long(tokens)
    rank: Expr | None = None
    if texts[tokens.at] == "@" and not tokens.on_new_line():  # there it is the guard of the next instruction
        tokens.at += 1
        rank = _rank(tokens, scope)
    span = tokens.span_since(at)
    scope.check_shape(name, len(indices), rank, span)
    return Name(name, indices, rank, span)


def _called(tokens: Tokens, scope: Scope, at: int) -> Expr:
    """Parse the arguments of the function at token ``at``, and inline its body."""
    function = scope.functions[tokens.texts[at]]
    if tokens.text != "(":
        raise problem("LIT089", tokens.span(at), name=function.name, expected=f"{function.name}(…)")
    tokens.at += 1
    args: list[Expr] = []
    while tokens.text != ")":
        args.append(parse_expression(tokens, scope))
        if not tokens.accept(","):
            break
    tokens.expect(")", "',' or ')'")
    if len(args) != len(function.params):
        many = "argument" if len(function.params) == 1 else "arguments"
        given = f"{len(args)} {'is' if len(args) == 1 else 'are'} given"
        takes = f"{len(function.params)} {many}"
        raise problem("LIT088", tokens.span_since(at), name=function.name, takes=takes, given=given)
    value = _substituted(tokens, at, function.body, dict(zip(function.params, args, strict=True)))
    if _too_big(value):
        raise _too_long(tokens)
    return value


def _substituted(tokens: Tokens, at: int, expr: Expr, args: dict[str, Expr]) -> Expr:
    """``expr`` with the arguments substituted for the parameters, folded again."""

    def inner(part: Expr) -> Expr:
        return _substituted(tokens, at, part, args)

    match expr:
        case Name(indices=(), rank=None) if expr.name in args:
            return args[expr.name]
        case Name():
            rank = None if expr.rank is None else inner(expr.rank)
            return Name(expr.name, tuple(map(inner, expr.indices)), rank, expr.span)
        case Unary():
            return _fold_unary(expr.op, inner(expr.operand))
        case Binary():
            return _fold_binary(tokens, at, expr.op, inner(expr.left), inner(expr.right))
    return expr


def _too_big(expr: Expr) -> bool:
    """Whether inlined calls exceed the size limit of an expression."""
    left = MAX_OPERATORS
    todo = [expr]
    while todo and left >= 0:
        match todo.pop():
            case Unary(operand=operand):
                todo.append(operand)
            case Binary(left=one, right=other):
                todo += [one, other]
            case Name(indices=indices):
                todo += indices
            case _:
                continue
        left -= 1
    return left < 0


def _rank(tokens: Tokens, scope: Scope) -> Expr:
    at = tokens.at
    if tokens.text == "(":
        tokens.at += 1
        rank = parse_expression(tokens, scope)
        tokens.expect(")")
    elif tokens.kind in (NUMBER, NAME) or tokens.text == "%":
        rank = _primary(tokens, scope)
    else:
        raise tokens.unexpected("a CTA rank: a number, a name or an expression in parentheses")
    if reads_register(rank):
        raise problem(
            "LIT065", tokens.span_since(at), expected="a constant rank", hint="use mapa to compute the address"
        )
    return rank


def reads_register(expr: Expr) -> bool:
    """Whether ``expr`` reads a register."""
    match expr:
        case Reg():
            return True
        case Unary():
            return reads_register(expr.operand)
        case Binary():
            return reads_register(expr.left) or reads_register(expr.right)
        case Name():
            return any(reads_register(index) for index in expr.indices)
    return False


def _fold_unary(operator: str, operand: Expr) -> Expr:
    if isinstance(operand, Const):
        return Const(apply_unary(operator, operand.value))
    return Unary(operator, operand)


def _fold_binary(tokens: Tokens, at: int, operator: str, left: Expr, right: Expr) -> Expr:
    if isinstance(left, Const) and isinstance(right, Const):
        try:
            return Const(checked_binary(operator, left.value, right.value))
        except Undefined as error:
            raise problem("LIT017", tokens.span(at), reason=str(error)) from None
    return Binary(operator, left, right)
