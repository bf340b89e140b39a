"""The learning interface: what a policy is shown in training only (SEAL, section 3.3)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
