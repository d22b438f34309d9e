"""Launches from compiler objects: a compiled kernel, a grid and arguments become a launch for ``mcheck.ptx.check``.

There is a module for each compiler (``triton`` also serves Gluon). No kernel is run: arguments may be tensors without
memory, or descriptions of tensors (``arguments.Tensor``). ``recording`` records the launches of a whole test-suite;
it and ``tilelang`` import compilers, and nothing else does.
"""
