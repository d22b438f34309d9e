"""Reports: answers as text, JSON, SARIF, JUnit, pictures and documents."""
