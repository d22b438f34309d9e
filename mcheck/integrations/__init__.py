"""Launches from what compilers hold: a compiled kernel, a grid and arguments become a launch for ``mcheck.ptx.check``.

A module for each compiler (``triton`` serves Gluon too). None of the compilers is imported, and no kernel is run:
arguments may be tensors without memory, or descriptions of tensors (``arguments.Tensor``).
"""
