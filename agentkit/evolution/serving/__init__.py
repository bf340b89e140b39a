"""Trying proposals on real requests: unseen beside the answers, or with a share of the sessions."""
