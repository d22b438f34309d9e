"""The answer about a file, whatever is asked of it, and about many: reading, errors, judgement, processes, limits."""
