"""The composite language: programs over tools, as data. Nothing here runs text as Python.

A lazy door, because most agents have no composite: text → ``parser`` (with ``reading`` for
expressions, ``calls``, ``dataflow``) → ``language``, the nodes in memory → ``interpreter`` over
``guards`` and ``functions``, with ``waiting`` when ``children`` have to be waited for.
``composite`` binds a program to its children, ``contracts`` evaluates conditions, ``source`` makes
a definition of a text (with ``annotations`` and ``type_check``), ``decorator`` one of a function.
``codec`` is the stored form, ``rendering`` the text of a program, ``rules`` are held against calls.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
