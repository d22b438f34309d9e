"""The cat language: parser, checked syntax tree, evaluators."""
