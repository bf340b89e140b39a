"""The retrievers that the typed cascade is compared with, all behind the same protocol."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
