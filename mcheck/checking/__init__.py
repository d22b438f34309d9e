"""From a question to an answer: which engine, which processes or machines, which cached results."""
