"""The parser of the block form: a block of PTX statements per role.

``name@cta 0, warp 1..5 { … }`` with ``for``, ``if``, ``const``, ``.reg``, labels and instructions. Loops of constant
bounds are unrolled and branches on registers lowered by ``mcheck.frontend.litmus.unroll``.
"""

from __future__ import annotations

from functools import partial

from mcheck.base.errors import Unsupported
from mcheck.base.records import replace
from mcheck.frontend.litmus.binding import Role, bind_program
from mcheck.frontend.litmus.conditions import parse_tail
from mcheck.frontend.litmus.header import Header
from mcheck.frontend.litmus.initial import Initial
from mcheck.frontend.litmus.role_parser import parse_declared_roles
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.smallest_number import build_smallest
from mcheck.frontend.litmus.statements import Body
from mcheck.frontend.litmus.unroll import Counting
from mcheck.ir.loop_unrolling import Aperiodic, LoopPeriodicity
from mcheck.ir.program import Program, ShortenedLoops


def parse_blocks(
    head: Header, end: int, size: int | None = None, *, every: bool = False, counting: Counting | None = None
) -> Program:
    """Parse the roles of a file whose init block ends at offset ``end``.

    A constant that is ``any`` has the value ``size``. Without ``size`` the file is ``Unsupported``, unless the question
    is about ``every`` number: then the program can build its instances (``Program.sized``). With ``every``, a program
    whose loops have many iterations comes with as few of them as will do, and can be built with more
    (``Program.long``).
    """
    if size is not None or not every:
        return _parse_with(head, end, 1 if size is None else size, size, every=every, counting=counting)
    return build_smallest(lambda k: _parse_with(head, end, k, None, every=every, counting=counting), 1)[1]


def _parse_with(
    head: Header, end: int, given: int, size: int | None, *, every: bool, counting: Counting | None
) -> Program:
    """The program with this value of a constant that is ``any``."""
    scope = Scope()
    scope.given = given
    initial = Initial()
    with scope.mistakes:
        tokens, roles = parse_declared_roles(head, end, scope, initial)
        ending = parse_tail(tokens, scope.for_tail())
    if (
        every
        and scope.parameter is None
        and counting is None
        and not scope.mistakes
        and (long := _find_long_loops(roles, scope))
    ):
        return _shorten_loops(head, end, long)
    program = bind_program(head, scope, initial, list(roles.values()), ending, dialect=False, counting=counting)
    if scope.parameter is None or size is not None:
        return program
    name, span = scope.parameter
    if not every:
        raise Unsupported(f"{name} is `any`: only `mcheck check` supports parametric programs", span)
    from mcheck.frontend.litmus.parametric.instances import Instances  # only parametric files need them
    from mcheck.frontend.litmus.parametric.symbolic import find_cta_family, find_rounds

    alone = partial(_parse_instance, head, end)
    return replace(
        program, parameter=name, instance=Instances(head, end, alone).program, rounds=partial(find_rounds, head, end),
        early_rounds=partial(find_rounds, head, end, early=True), family=partial(find_cta_family, head, end),
    )  # fmt: skip


def _parse_instance(head: Header, end: int, size: int) -> Program:
    """The program of a parametric file with a value of its parameter, parsed by itself."""
    return parse_blocks(head, end, size, counting=Counting())


def parse_role_bodies(head: Header, end: int) -> dict[str, Body]:
    """The statements of each role as they are written, bound to no thread; raises ``InputError``."""

    def parse(number: int) -> dict[str, Body]:
        scope = Scope()
        scope.given = number
        with scope.mistakes:
            _, roles = parse_declared_roles(head, end, scope, Initial())
        return {name: role.body for name, role in roles.items()}

    return build_smallest(parse, 2)[1]


def _find_long_loops(roles: dict[str, Role], scope: Scope) -> LoopPeriodicity | None:
    """The periodicity of roles whose loops have many iterations, if they are periodic."""
    from mcheck.frontend.litmus.parametric.periodicity import find_periodic_loops  # only loops need it

    try:
        found = find_periodic_loops(roles, scope.objects, None)
    except Aperiodic:
        return None
    counts = [cuts.count - cuts.behind for cuts in found.loops.values() if cuts.count is not None]
    if max(counts) > 2 * min(counts):  # loops that go on long after the others have ended do not repeat together
        return None
    return found if min(counts) > found.ahead + 3 * found.period else None


def _shorten_loops(head: Header, end: int, found: LoopPeriodicity) -> Program:
    """The program with one period of its long loops; the iterations before it are left out."""

    def without(kept: int, left_out: int) -> Program:
        return parse_blocks(head, end, counting=Counting(found.loops, kept, left_out))

    few = without(found.ahead, found.left_out(found.ahead, found.period))
    return replace(few, shortened=ShortenedLoops(found, without, partial(parse_blocks, head, end)))
