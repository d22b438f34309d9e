"""From operations to events: what each instruction adds to a thread, and the paths that the thread may take."""
