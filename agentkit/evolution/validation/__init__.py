"""What is asked of a suggested change before anybody runs it: ``validate``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
