"""9. Out of the library: artifacts, the formats of providers, and what a reviewer wants to see."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
