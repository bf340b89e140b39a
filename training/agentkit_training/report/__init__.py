"""What a run shows to people: one HTML page with its curves."""
