"""Histories as a whole: reading one from any store, copying, comparing and checking it."""
