"""Kernels with an unbounded parameter: the registers that grow with it, and the period of the trace."""
