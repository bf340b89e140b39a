"""Results of benchmark runs: reports from episodes, comparisons of two reports, pages."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
