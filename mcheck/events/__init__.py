"""Execution graphs: events of threads' paths, event structures, base relations, and the choices of an execution."""
