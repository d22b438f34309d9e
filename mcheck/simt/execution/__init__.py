"""The state of a followed cluster: lanes as vectors, memory, what is known of a value, the operations recorded."""
