"""Search for fixes: the program is amended, run again, and has to be free of the finding."""
