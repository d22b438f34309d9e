"""Check of PTX modules as compilers emit them, with the launch of a kernel, or several launches in stream order.

``check`` is the public function. ``mcheck.frontend.ptx`` reads modules and launches, ``mcheck.simt`` executes a
cluster, ``mcheck.checking.modules`` computes the answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcheck.checking.run.result import Result

__all__ = ["check"]


def check(
    text_or_path: str | os.PathLike[str],
    launch: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    model: str | None = None,
    profile: str = "ptx",
    engine: str = "auto",
    timeout: float | None = None,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    cpu_timeout: float | None = None,
) -> Result:
    """The answer of ``mcheck check MODULE.ptx --launch LAUNCH.json``: verdict, findings, assumptions, seconds.

    The module is given by its text or its path, the launch, or launches, as a dictionary or by the path of a JSON file,
    that beside the module by default; see docs/ptx-modules.md. With a ``timeout``, in seconds, or a ``cpu_timeout``, in
    those of the processor, a process of its own does the work and is stopped in time. What is wrong with either is not
    raised: the verdict is ``error`` then, and ``problem`` the exception.
    """
    from mcheck.checking.check.python import check_python
    from mcheck.checking.run.case import Options, Settings

    if timeout is not None and cpu_timeout is not None:
        raise ValueError("timeout and cpu_timeout: give only one of them")
    limit, processor_time = (timeout, False) if cpu_timeout is None else (cpu_timeout, True)
    settings = Settings(model=model, profile=profile, timeout=limit, processor_time=processor_time)
    return check_python(text_or_path, launch, settings, Options(engine=engine, select=select, ignore=ignore))
