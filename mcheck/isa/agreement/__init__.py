"""Does the instruction table agree with NVIDIA's assembler? ``python -m mcheck.isa.agreement`` asks it."""
