"""The answer about a launch of a PTX module, also where a parameter is any number."""
