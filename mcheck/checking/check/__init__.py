"""What ``mcheck check`` asks: inquiries about programs and modules, selection and suppression of findings."""
