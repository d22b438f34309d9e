"""The ``mcheck`` command, also as ``python -m mcheck``: what is set here is for a process of its own."""

import atexit
import gc
import sys

FIRST_COLLECTION = 250_000
"""Objects that are made before the first garbage collection: a small test ends before it. It would walk everything
that was imported, a sixth of the time that a small test takes, and find nothing.
"""
COLLECTION_THRESHOLD = 50_000
"""Objects that are made between two later ones, where Python has 700."""


def main() -> int:
    """Run the command line of this process, and return the exit status."""
    delay_collections()
    atexit.register(gc.freeze)  # all memory goes at once, and Python would search it twice before
    from mcheck.tools.cli.main import main as run_command

    return run_command()


def delay_collections() -> None:
    """Collect garbage for the first time after ``FIRST_COLLECTION`` objects, then after ``COLLECTION_THRESHOLD``."""
    if gc.get_threshold()[0] >= FIRST_COLLECTION:
        return

    def collected(phase: str, _: object) -> None:
        if phase == "stop" and gc.get_threshold()[0] == FIRST_COLLECTION:  # an engine sets its own for a while
            gc.callbacks.remove(collected)
            gc.set_threshold(max(before, COLLECTION_THRESHOLD))

    before = gc.get_threshold()[0]
    gc.callbacks.append(collected)
    gc.set_threshold(FIRST_COLLECTION)


if __name__ == "__main__":
    sys.exit(main())
