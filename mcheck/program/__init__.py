"""Programs: threads with their place, memory objects, operations, the final condition."""
