"""agentkit: an agent runtime whose tool definitions are living, versioned data.

The public nouns are ``Tool``, ``Library`` and ``Agent``. Importing this package loads the
standard library alone; each name loads its module when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
