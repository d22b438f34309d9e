"""Does the instruction table agree with NVIDIA's assembler? ``python -m tests.isa.agreement`` asks it."""
