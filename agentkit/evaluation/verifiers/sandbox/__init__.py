"""Foreign Python code in a process of its own, under limits."""
