"""Composites that a model writes from episodes that went well (CoCoDA, Algorithm 1)."""
