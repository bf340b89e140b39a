"""2. The versioned set of tools: the snapshot, and the seam that keeps it.

The stores themselves load with ``open_store(url)``; importing this package loads none of them, nor
the events, which agents do not write.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
