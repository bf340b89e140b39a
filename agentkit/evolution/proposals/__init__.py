"""Suggested changes: what they are, who makes them, and how they come to be believed."""
