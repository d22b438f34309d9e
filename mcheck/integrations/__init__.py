"""Launches from compiler objects: a compiled kernel, a grid and arguments become a launch for ``mcheck.ptx.check``.

There is a module for each compiler (``triton`` also serves Gluon). No compiler is imported, and no kernel is run:
arguments may be tensors without memory, or descriptions of tensors (``arguments.Tensor``).
"""
