"""6. Why it failed: labels for turns, and failures in words that a model can act on."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
