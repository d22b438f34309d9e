"""The parser of what a file declares, and of its roles: ``name@cta 0, warp 1..5 { … }``."""

from __future__ import annotations

from mcheck.base.errors import InputError
from mcheck.frontend.litmus.binding import Role
from mcheck.frontend.litmus.cancel_requests import begin, declare_responses
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.conditions import PARTS
from mcheck.frontend.litmus.declarations import parse_init_block
from mcheck.frontend.litmus.definitions import DEFINITIONS, parse_definition
from mcheck.frontend.litmus.error_recovery import UNCLOSED, skip_section, skip_statement
from mcheck.frontend.litmus.header import Header
from mcheck.frontend.litmus.initial import Initial
from mcheck.frontend.litmus.lexer import END, NAME, Tokens
from mcheck.frontend.litmus.placement import parse_placement
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.statement_parser import StatementParser
from mcheck.frontend.litmus.statements import Body

REQUEST = "clusterlaunchcontrol.try_cancel"


def parse_declared_roles(head: Header, end: int, scope: Scope, initial: Initial) -> tuple[Tokens, dict[str, Role]]:
    """The roles of a file, whose definitions and declarations go into ``scope``, and the tokens after them."""
    source = head.source
    declare(head, end, scope, initial)
    tokens = Tokens(source, end + 1, len(source.clean))
    return tokens, parse_roles(tokens, scope, head.target)


def declare(head: Header, end: int, scope: Scope, initial: Initial) -> None:
    """Put what stands before the roles into the scope: definitions, and the declarations of the init block."""
    source = head.source
    define(head, scope)
    parse_init_block(Tokens(source, head.body, end + 1), scope, initial)
    if REQUEST in source.clean:
        declare_responses(scope)


def define(head: Header, scope: Scope) -> None:
    """Put the definitions before the init block into the scope."""
    if head.words:
        _header_words(Tokens(head.source, 0, head.body - 1, head.words), scope)


def parse_roles(tokens: Tokens, scope: Scope, target: str | None) -> dict[str, Role]:
    """Parse the roles, and the definitions between them."""
    roles: dict[str, Role] = {}
    while tokens.kind != END and tokens.text not in PARTS:
        first = tokens.at
        try:
            if not tokens.accept(";") and not parse_definition(tokens, scope):
                _role(tokens, scope, target, roles)
        except InputError as error:
            _recover(tokens, scope, error, first)
    if not roles and not scope.mistakes:
        raise problem("LIT048", tokens.span(), expected="a role such as 'P0@cta 0 { … }'")
    return roles


def _recover(tokens: Tokens, scope: Scope, error: InputError, first: int) -> None:
    """Record an error outside all blocks, or in an unclosed block, and continue after it."""
    if tokens.texts[first] == "include":
        raise error  # what it would have declared is not known
    declares = tokens.texts[first] in DEFINITIONS
    if declares:
        skip_statement(tokens, first)
    elif error.code not in UNCLOSED:
        skip_section(tokens, first, PARTS | DEFINITIONS)
    scope.mistakes.record(error, tokens, first, scope.names() if declares else None)
    tokens.at = max(tokens.at, first + 1)


def _header_words(tokens: Tokens, scope: Scope) -> None:
    """Parse the definitions before the init block, which array sizes can use."""
    while tokens.kind != END:
        first = tokens.at
        try:
            if parse_definition(tokens, scope):
                continue
        except InputError as error:
            _recover(tokens, scope, error, first)
            continue
        if tokens.text == '"':
            raise problem("LIT009", tokens.span(), expected='"')
        if not tokens.accept(";"):
            words = ("model", "target", "const", "def", "include")
            hint = suggest(tokens.text, words)
            expected = "quoted lines, model, target, const, or the init block"
            raise problem("LIT019", tokens.span(), found=tokens.found(), expected=expected, hint=hint)


def _role(tokens: Tokens, scope: Scope, target: str | None, roles: dict[str, Role]) -> None:
    at = tokens.at
    if tokens.kind == NAME and "." in tokens.text:
        raise tokens.unexpected("a role such as 'P0@cta 0 { … }'", "write instructions inside a role")
    name = tokens.name("a role such as 'P0@cta 0 { … }', a condition or expect")
    if tokens.text not in ("@", "{"):
        tokens.at = at
        hint = suggest(name, ("exists", "forall", "locations", "filter", "expect", "const", "def", "include"))
        raise tokens.unexpected("a role such as 'P0@cta 0 { … }', a condition or expect", hint)
    place = None
    try:
        if name in roles:
            raise problem("LIT047", tokens.span(at), name=name, hint="write one block per role")
        place = parse_placement(tokens, scope, name, at, ("{",))
    except InputError as error:
        while tokens.text != "{":
            tokens.at += 1
            if tokens.kind == END or tokens.on_new_line():
                raise
        scope.mistakes.record(error, tokens, at)
    inner = scope.for_role()
    labels: set[str] = set()
    statements = StatementParser(tokens, target)
    body = statements.block(inner, labels, 0)
    if place is not None:
        body = Body(body.steps, frozenset(labels))
        roles[name] = Role(name, place, begin(body) if statements.requests else body, inner.types)
