"""The cat language: parser, checked syntax tree, evaluators."""

from mcheck.cat.library import full_text, load_model, parse_model
from mcheck.cat.model_files import model_names, models_directory

__all__ = ["full_text", "load_model", "model_names", "models_directory", "parse_model"]
