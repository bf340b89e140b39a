"""The catalogue doctor: what is wrong with a pile of tools, found without a model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
