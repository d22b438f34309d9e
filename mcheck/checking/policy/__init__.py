"""Which engine answers which question about which program: the one way to an answer, for commands and library alike."""
