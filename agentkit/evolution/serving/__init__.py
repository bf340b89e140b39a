"""Trying proposals on real requests: unseen beside the answers, or with a share of the sessions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
