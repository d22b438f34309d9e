"""The ``mcheck`` command, also as ``python -m mcheck``."""

import sys

from mcheck.tools.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
