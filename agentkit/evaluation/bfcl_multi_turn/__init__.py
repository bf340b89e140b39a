"""BFCL's multi-turn questions: simulated worlds that calls change, judged by what they did."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
