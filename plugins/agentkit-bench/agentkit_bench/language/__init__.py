"""The language report to read: as tables, a Markdown page and an HTML page."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
