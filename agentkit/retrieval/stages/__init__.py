"""The stages that ship: callables that rank or narrow the survivors, one a file.

Each is an item in the list that ``CascadeRetriever(stages=[...])`` takes; order is meaning. The
scores that stages add are of the same size on purpose: a ranking adds between 0 and 1, a request
answered before up to 1.5, a mention by name 3 or more, so that it wins over both together.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
