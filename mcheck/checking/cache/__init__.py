"""Answers that are kept from one run to the next: by the texts of program and model, the options and the version."""
