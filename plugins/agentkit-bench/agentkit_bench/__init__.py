"""Benchmarks of agentkit, as the command ``agentkit bench``.

``agentkit_bench.retrieval`` compares ways to find tools, ``agentkit_bench.language`` shows how the
words of tools changed.
"""

from __future__ import annotations

from agentkit_bench._version import __version__

__all__ = ["__version__"]
