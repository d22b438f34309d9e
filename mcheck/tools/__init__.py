"""The tools: the command line, the language server, the playground, the generator of litmus tests."""
