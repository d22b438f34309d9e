"""Launches from what compilers hold: a compiled kernel, a grid and its arguments become a launch for ``mcheck.ptx.check``.

A module for each compiler (``triton`` serves Gluon too). None of them is imported unless its kernels are passed in, and no
kernel is run: arguments may be tensors without memory, or descriptions of them (``arguments.Tensor``).
"""
