"""What ``mcheck check`` does with a file: engines, expectations, selection and suppression of findings."""
