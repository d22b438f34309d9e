"""A model followed while an execution grows: which earlier events stand in which relation to the one that is added."""
