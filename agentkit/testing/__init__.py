"""Shipped doubles and suites, for our tests and yours. A name loads when it is first used."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
