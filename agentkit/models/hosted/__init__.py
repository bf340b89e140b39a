"""Models by name: the callables that ``resolve_model`` opens, each loading its package late."""
