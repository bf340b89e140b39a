"""What is asked of a suggested change before anybody runs it."""
