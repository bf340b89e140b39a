"""Benchmarks: public ones as ``Benchmark``, tasks of one's own, and the one door to all of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
