"""A model compiled from cat so that it is evaluated event by event while an execution grows."""
