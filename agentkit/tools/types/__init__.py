"""The types of arguments and results, as far as a catalogue lets us know them.

``lattice`` holds the types and their order, ``meanings`` the semantic ones; ``schemas`` reads what
a JSON Schema declares, ``inference`` and ``values`` guess what it does not; ``unify`` compares a
goal with a tool. The public names are in ``agentkit.tools.signature``.
"""
