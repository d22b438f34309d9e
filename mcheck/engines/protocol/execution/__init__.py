"""One execution: what all executions of a program share (``setup``), and its state machine."""
