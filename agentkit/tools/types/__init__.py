"""The types of arguments and results, as far as a catalogue lets us know them.

``lattice`` holds the types and their order; ``declared`` reads what a JSON Schema says and
``inference`` guesses what it leaves open, with the word lists of ``vocabulary``; ``fit`` compares a
goal with a tool, and ``keys`` are the classes of types that an index tells apart. Nothing here
decides alone whether a tool is offered: retrieval uses types as a score (``agentkit.retrieval``).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
