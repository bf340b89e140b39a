"""The static rules of the composite language, one idea per module."""
