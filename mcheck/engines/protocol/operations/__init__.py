"""The steps of an execution: what each kind of operation does to the machine and the window."""
