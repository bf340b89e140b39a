"""How much each rollout's advantage counts, by what its turns are labelled with (SEAL, 3.4)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
