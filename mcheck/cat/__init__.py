"""The cat language: parser, checked syntax tree, evaluators."""

from mcheck.cat.library import load_model, model_names, models_directory, parse_model

__all__ = ["load_model", "model_names", "models_directory", "parse_model"]
