"""Types of values beyond JSON's: a lattice, what is guessed of names and values, and what fits."""
