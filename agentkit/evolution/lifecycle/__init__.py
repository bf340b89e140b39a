"""The life cycle of proposals: states, who may bring them on, and what is written when."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
