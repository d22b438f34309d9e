"""The roles of a file with its parameter as a name, what of the file then repeats, and which CTAs are alike."""

from __future__ import annotations

from collections.abc import Mapping

from mcheck.base.errors import InputError, Span
from mcheck.frontend.litmus.binding import Role
from mcheck.frontend.litmus.header import Header
from mcheck.frontend.litmus.initial import Initial
from mcheck.frontend.litmus.lexer import END, NAME, NUMBER, Tokens
from mcheck.frontend.litmus.role_parser import declare, define, parse_roles
from mcheck.frontend.litmus.scope import Scope
from mcheck.ir.cta_family import CtaFamily, NotAlike
from mcheck.ir.expr import Binary, Const, Expr, Name
from mcheck.ir.loop_unrolling import Aperiodic, LoopPeriodicity

GROWING = frozenset(("*", "+", "(", ")"))
"""What may occur beside the parameter in a size: such a size grows by a constant or increasing amount."""


def find_rounds(head: Header, end: int, *, early: bool = False) -> LoopPeriodicity:
    """The periodicity of the roles in the parameter of the file; raises ``Aperiodic`` if there is none.

    ``early``: in the instances before any comparison changes its result.

    The parameter stays a name in the roles. In the init block it is a number, and may occur in sizes only.
    """
    from mcheck.frontend.litmus.parametric.periodicity import find_periodic_loops

    try:
        scope, _, roles = parse_symbolically(head, end)
    except InputError as error:
        raise Aperiodic(error.message, error.span) from None
    if scope.mistakes or is_place(roles):
        raise Aperiodic("the number stands where a constant has to, as in the place of a role")
    assert scope.parameter is not None, "asked of files that have such a constant"
    return find_periodic_loops(roles, scope.objects, scope.parameter[0], early=early)


def find_cta_family(head: Header, end: int) -> CtaFamily:
    """The CTAs of a file that are alike, as many as its parameter says. Raises ``NotAlike``."""
    from mcheck.frontend.litmus.alike_ctas.family import read_family

    try:
        scope, _, roles = parse_symbolically(head, end)
        (one, initial), (two, _) = (declared(head, end, number) for number in (1, 2))
    except InputError as error:
        raise NotAlike(error.message, error.span) from None
    except Aperiodic as error:
        raise NotAlike(str(error)) from None
    if scope.mistakes or one.mistakes:
        raise NotAlike("the number stands where a constant has to")
    if initial.registers:
        raise NotAlike("registers have initial values", initial.registers[0].span)
    if any(value < 0 for value in one.constants.values()):
        raise NotAlike("a constant is negative")  # sizes then may not grow ever faster
    assert scope.parameter is not None, "asked of files that have such a constant"
    return read_family(list(roles.values()), one.objects, two.objects, scope.parameter[0])


def declared(head: Header, end: int, number: int) -> tuple[Scope, Initial]:
    """What the init block declares for a value of the parameter."""
    scope, initial = Scope(), Initial()
    scope.given = number
    declare(head, end, scope, initial)
    return scope, initial


def is_place(roles: Mapping[str, Role]) -> bool:
    """Whether the place of a role depends on the parameter, which is a name in it."""
    return any(role.placement.ends for role in roles.values())


def parse_symbolically(head: Header, end: int) -> tuple[Scope, Tokens, dict[str, Role]]:
    """The scope and the roles of a file, with its parameter as a name, and the tokens after them."""
    source = head.source
    scope = Scope()
    scope.given = 1
    scope.symbolic = True
    define(head, scope)
    sizes = Tokens(source, head.body, end + 1)
    if scope.parameter is not None:
        _require_only_in_sizes(sizes, *scope.parameter)
    for name, value in scope.derived.items():
        _require_only_in_sizes(sizes, name, None, plain=_is_sum_of_products(value))
    numbered, _ = declared(head, end, 1)
    scope.objects.update(numbered.objects)
    scope.types.update(numbered.types)
    tokens = Tokens(source, end + 1, len(source.clean))
    return scope, tokens, parse_roles(tokens, scope, head.target)


def _is_sum_of_products(value: Expr) -> bool:
    match value:
        case Binary("+" | "*", left, right):
            return _is_sum_of_products(left) and _is_sum_of_products(right)
    return isinstance(value, Name) or (isinstance(value, Const) and value.value >= 0)


def _require_only_in_sizes(tokens: Tokens, name: str, declared: Span | None, *, plain: bool = True) -> None:
    """Raise ``Aperiodic`` if a name occurs in an init block other than in the first size of an object, where only sums
    and products are allowed, and of which the name itself must be made (``plain``).
    """
    tokens.at = 0
    inside: int | None = None
    while tokens.kind != END:
        at, text = tokens.at, tokens.text
        if text == "[" and inside is None:
            inside = at
        elif text == "]" and inside is not None:
            texts, kinds = tokens.texts[inside + 1 : at], tokens.kinds[inside + 1 : at]
            grows = all(k in (NAME, NUMBER) or t in GROWING for t, k in zip(texts, kinds, strict=True))
            called = any(k == NAME and t == "(" for k, t in zip(kinds, texts[1:], strict=False))
            if name in texts and (not (plain and grows) or called or tokens.kinds[inside - 1] != NAME):
                raise Aperiodic(f"{name} in a size that is not computed by + and * alone", tokens.span(inside))
            inside = None
        elif text == "include" or (text == name and inside is None and tokens.span() != declared):
            raise Aperiodic(f"{name} in the init block outside of a size", tokens.span())
        tokens.at += 1
