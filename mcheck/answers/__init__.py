"""The answer to a question: its verdict, witnesses and final states, and the parts of messages that engines share."""
