"""What an answer is made of: its type, final states, findings and witnesses in words."""
