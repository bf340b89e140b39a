"""What a run of a benchmark found: episodes to reports, two reports side by side, pages to read."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
