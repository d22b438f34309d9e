"""The intermediate representation: programs, threads, operations, expressions, memory; and data-flow analyses."""
