"""What the numbers must say before a suggested change goes one step further."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
