"""The composite language: programs over tools, as data. Nothing here runs text as Python.

A lazy door, because most agents have no composite: text → ``parser`` (with ``calls``, and
``syntax`` for expressions, both ways) → ``language``, the nodes in memory → ``interpreter`` over
``guards`` and ``functions``, with ``waiting`` when ``children`` have to be waited for.
``composite`` reads and writes the stored form and binds a program to its children, ``contracts``
holds conditions and learned rules against calls, ``source`` makes a definition of a text (with
``type_check``), ``decorator`` one of a function.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
