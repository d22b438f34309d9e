"""Answers for people and machines: text, JSON, SARIF, JUnit, pictures, documents."""
