"""Proposers: who suggests changes from what happened, with a model and without."""
