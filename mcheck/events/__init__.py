"""Execution graphs: events of a thread's paths, event structures, base relations, and the choices of an execution."""
