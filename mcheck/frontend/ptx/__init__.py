"""The reader of PTX modules and of the launches that run them."""
