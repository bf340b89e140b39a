"""Public benchmarks for agentkit, retrieval methods to compare, and the language report.

``agentkit eval NAME`` and ``agentkit bench`` find what is here by entry point.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
