"""Running suites: which tests, what they should say, processes and time-outs."""
