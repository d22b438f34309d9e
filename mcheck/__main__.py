"""The ``mcheck`` command, also as ``python -m mcheck``."""

from mcheck.cli import main

if __name__ == "__main__":
    main()
