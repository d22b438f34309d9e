"""One execution of a program: what all executions share (``setup``), and the state of one (``machine``)."""
