"""The composite language: programs over tools, as data. Nothing here runs text as Python.

A lazy door: the nodes of programs cost more to import than all the rest of an agent, and most
agents have no composite. A function that is called like its module (``render``) is not offered
here: importing the module would put it in the function's place.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
