"""A single-threaded process that runs the tests of parcels one after the other and sends each result.

``python -m mcheck.checking.machines.runner LIFE``: parcels arrive on standard input, results leave on standard output,
each a pickle after its length. The process ends when its input ends, or when the holder of the other end of the pipe
``LIFE`` does.
"""

from __future__ import annotations

import os
import pickle
import sys

from mcheck.cat.library import register_models
from mcheck.checking.machines.parcel import Parcel
from mcheck.checking.policy.engines import preload
from mcheck.checking.run import worker_limits
from mcheck.checking.run.pipes import receive, send
from mcheck.checking.run.pool import run_cases


def main() -> None:
    """Main loop of a runner."""
    worker_limits.exit_with_pipe(int(sys.argv[1]))
    answers = os.dup(1)
    os.dup2(2, 1)  # what a test prints is no answer
    for engine in ("explicit", "protocol"):  # where a limit wants a process for each parcel, it has them already
        preload(engine)
    while (order := receive(0)) is not None:
        parcel: Parcel = pickle.loads(order)  # noqa: S301 - from the worker that started this process
        register_models(dict(parcel.models))
        for result in run_cases(parcel.cases, parcel.settings, 1, parcel.task, parcel.lost):
            send(answers, pickle.dumps(result, pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    main()
