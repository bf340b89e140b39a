"""Composites mined from episodes, without asking any model.

``sources`` makes trajectories of episodes, ``dataflow`` finds where arguments came from,
``patterns`` finds recurring groups of calls, ``lifting`` makes programs of them, ``selection``
takes those that save most, ``candidates`` writes their definitions, ``rewriting`` puts them in the
place of calls and ``replaying`` proves that nothing else changes.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
