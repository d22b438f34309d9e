"""What is made of the recorded operations: shorter programs with the same findings, names for addresses."""
