"""Which synchronisation of a program its proof needs: edits of the text, each checked anew."""
