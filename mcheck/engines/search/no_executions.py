"""Programs without complete executions: the answer has to say why there are none.

Two engines that share a mistake agree, and a program without any execution satisfies every condition on all of them.
"""

from __future__ import annotations

from itertools import product

from mcheck.base.budget import TimeOut
from mcheck.base.errors import InternalError, Unsupported
from mcheck.base.reasons import Cause, Reason, error_reason, timeout_reason
from mcheck.engines.search.search import Run
from mcheck.events.event import Path

STOPPED = Reason(Cause.NONE_ENDS, "no execution ends: every one reaches undefined behaviour")


def why_none_ends(run: Run) -> Reason | None:
    """Why no execution of an explored program ends; ``None`` if one does, or the answer says more already.

    Some thread waits forever or is undefined, or the model forbids all executions. Otherwise the engine has lost the
    executions, which is a bug.
    """
    if run.undefined or run.bounded:
        return None
    every = run.thread_paths
    complete = [[p for p in paths if p.end == "end"] for paths in every]
    try:
        if _some_end(run, complete):
            return None
        if not run.blocking_wanted and run.prop != "liveness":
            run.search_deadlocks(every, first=True)
    except (TimeOut, Unsupported) as error:
        why = timeout_reason(run.limit.seconds) if isinstance(error, TimeOut) else error_reason(error)
        return Reason(Cause.NONE_ENDS, "it is not known whether any execution ends", because=(why,))
    found = sorted(run.findings.values(), key=lambda f: (f.kind != "deadlock", f.code, f.message))
    if found and found[0].kind in ("deadlock", "undefined"):
        return Reason(Cause.NONE_ENDS, f"no execution ends: {found[0].code}, {found[0].message}")
    if run.note:
        return Reason(Cause.NONE_ENDS, "no execution ends", because=run.note)
    if run.diverged or any(p.end == "undefined" for paths in every for p in paths):
        return STOPPED
    if any(True for combination in product(*complete) for _ in run.structures(combination)):
        axioms = f" ({', '.join(sorted(run.failed))})" if run.failed else ""
        return Reason(Cause.NONE_ENDS, f"no execution ends: the model forbids all of them{axioms}")
    raise InternalError("the program has no execution, for no known reason")


def some_end(run: Run) -> bool:
    """Whether some execution of an explored program ends, as far as known."""
    if run.bounded:
        return True
    try:
        return _some_end(run, [[p for p in paths if p.end == "end"] for paths in run.thread_paths])
    except (TimeOut, Unsupported):
        return True


def _some_end(run: Run, complete: list[list[Path]]) -> bool:
    """Whether some execution ends without a misuse."""
    if run.ends or (run.complete and run.prop != "liveness"):
        return run.ends
    return any(
        run.consistent(s, [c for c in choices if c.kind != "final"]) is not None
        for combination in product(*complete)
        for s, choices in run.structures(combination)
    )
