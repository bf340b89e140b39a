"""The store ``dir:PATH``: one readable file for each tool, made for review in git."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
