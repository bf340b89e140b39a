"""Providers' protocols as a server speaks them: one module each, pure functions."""
