"""Episodes to judge, made of calls and answers."""

from __future__ import annotations

from support.judging import call, episode, returned  # noqa: F401 - fixtures
