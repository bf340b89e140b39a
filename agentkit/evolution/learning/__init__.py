"""Learning from use: successful episodes become worked examples of the tools that they called.

``uses`` says which words each call served, ``lessons`` chooses what is new and worth keeping, with
``variety`` and ``private``; ``ToolManager.learn`` writes it, and ``report`` tells what came of it.
``unmatched`` finds the words that users say and no tool has.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
