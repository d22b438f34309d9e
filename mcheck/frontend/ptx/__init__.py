"""Reading PTX modules, and the launches that run them."""
