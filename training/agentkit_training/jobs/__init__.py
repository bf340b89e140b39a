"""Whole runs: what the commands do, from a configuration to a folder with results."""
