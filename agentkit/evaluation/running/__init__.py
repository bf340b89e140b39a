"""Asking a benchmark's questions, judging the answers, keeping them as episodes."""
