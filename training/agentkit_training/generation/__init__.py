"""Writing many answers at once."""
