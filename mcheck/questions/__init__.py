"""A question about a program, put to one event structure after the other; how each is looked at is an engine's."""
