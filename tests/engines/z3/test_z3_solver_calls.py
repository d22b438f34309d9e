"""What Z3 says when it has no answer: never a no."""

from __future__ import annotations

import os
import signal
import threading

import pytest
import z3

from mcheck.base.budget import TimeOut
from mcheck.base.errors import Unsupported
from mcheck.engines.z3.solver_calls import satisfiable


def pigeons(holes: int) -> z3.Solver:
    """More pigeons than holes: hard to refute by resolution."""
    solver = z3.SolverFor("QF_FD")
    sits = [[z3.Bool(f"p{i}in{j}") for j in range(holes)] for i in range(holes + 1)]
    for row in sits:
        solver.add(z3.Or(row))
    for j in range(holes):
        for i in range(holes + 1):
            for k in range(i):
                solver.add(z3.Or(z3.Not(sits[i][j]), z3.Not(sits[k][j])))
    return solver


def test_yes_and_no() -> None:
    solver = z3.SolverFor("QF_FD")
    x = z3.Bool("x")
    assert satisfiable(solver, [x])
    assert not satisfiable(solver, [x, z3.Not(x)])


def test_too_little_time_is_a_time_out() -> None:
    with pytest.raises(TimeOut):
        satisfiable(pigeons(14), seconds=0.2)


def test_an_interrupt_is_an_interrupt_and_no_answer() -> None:
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        satisfiable(pigeons(14), seconds=60)
    timer.join()


def test_what_z3_gives_up_is_unsupported() -> None:
    x, y, z = z3.Ints("x y z")
    solver = z3.Solver()
    solver.add(x > 2, y > 2, z > 2, x * x * x * x * x + y * y * y * y * y == z * z * z * z * z)
    with pytest.raises((Unsupported, TimeOut)):
        satisfiable(solver, seconds=0.5)
