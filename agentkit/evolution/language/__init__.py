"""How the words of tools change: edit size, meaning, vocabulary, depth, cost and convergence."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
