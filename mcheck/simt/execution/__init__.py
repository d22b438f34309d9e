"""The state of an executed cluster: lanes as vectors, memory, the taint of values, the recorded operations."""
