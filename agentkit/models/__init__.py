"""The seam to language models: the protocol, its records, the adapters.

``base`` holds the protocol. ``openai_compatible`` and ``anthropic`` speak the providers' protocols
over ``transport``; ``prompted`` gives tools to models that know none. A name loads its module when
it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
