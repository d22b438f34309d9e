"""An assertion for tests of kernels: the synchronisation of a kernel is correct, or the finding is the message."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from mcheck.base.errors import InputError
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result
from mcheck.integrations.tilelang import Kernel
from mcheck.integrations.triton import launch as launch_of
from mcheck.ptx import check
from mcheck.report.checked import describe
from mcheck.report.errors import render
from mcheck.report.lines import plain


def assert_clean(
    kernel: Any,
    grid: Sequence[int] | None = None,
    arguments: Mapping[str, Any] | Sequence[Any] = (),
    *,
    launch: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    bounded: bool = False,
    **options: Any,
) -> Result:
    """Checks one launch of ``kernel`` and returns the answer; ``AssertionError`` with the report if it is not proved.

    ``kernel`` is what Triton or Gluon compiled, launched on ``grid`` with ``arguments``
    (``mcheck.integrations.triton.launch``), what ``mcheck.integrations.tilelang.compile_kernel`` compiled, or the text
    or path of a module, with ``launch`` as ``mcheck.ptx.check`` takes it. ``bounded`` lets pass an answer that found
    nothing and could not cover everything. ``options`` are those
    of ``check`` (``profile``, ``timeout``, ``ignore``, …).
    """
    if isinstance(kernel, Kernel):
        answer = check(kernel.path or kernel.ptx, launch or kernel.launch, **options)
    elif isinstance(kernel, str | os.PathLike):
        answer = check(kernel, launch, **options)
    elif grid is None:
        raise InputError("a compiled kernel is checked on a grid: assert_clean(kernel, grid, arguments)")
    else:
        answer = check(kernel.asm["ptx"], launch_of(kernel, grid, arguments), **options)
    if answer.status == "ok" or (bounded and answer.verdict is Verdict.BOUNDED and answer.as_expected):
        return answer
    raise AssertionError(report(answer))


def report(answer: Result, *, details: bool = True) -> str:
    """The report that ``mcheck check`` would print of the answer, with ``-v`` if with ``details``."""
    if answer.problem is not None:
        return render(answer.problem, sources={answer.path: answer.source})
    return "\n".join(plain(line) for line in describe(answer, details=details))
