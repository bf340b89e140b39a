"""5. What happened: the record of a run, its verdict and its diagnosis."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
