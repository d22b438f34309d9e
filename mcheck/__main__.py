"""The ``mcheck`` command, also as ``python -m mcheck``: what is set here is for a process of its own."""

import atexit
import gc
import sys

COLLECTION_THRESHOLD = 50_000
"""Objects that are made between two garbage collections: with Python's 700 they are a tenth of what a small test takes,
and find nothing, as what is imported stays.
"""


def main() -> int:
    """Run the command line of this process, and return the exit status."""
    gc.set_threshold(max(gc.get_threshold()[0], COLLECTION_THRESHOLD))
    atexit.register(gc.freeze)  # all memory goes at once, and Python would search it twice before
    from mcheck.tools.cli.main import main as run_command

    return run_command()


if __name__ == "__main__":
    sys.exit(main())
