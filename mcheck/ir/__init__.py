"""The intermediate form: programs, threads, operations, expressions, memory, and plain data-flow facts about them."""
