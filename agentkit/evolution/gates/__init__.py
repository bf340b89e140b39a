"""What the numbers must say before a suggested change goes one step further."""
