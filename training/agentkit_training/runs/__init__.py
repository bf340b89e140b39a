"""A run on disk: what it was, what happened step by step, and what it left."""
