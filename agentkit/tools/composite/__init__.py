"""The composite language: programs over tools, as data. Nothing here runs text as Python."""
