"""Tools that demand what their definitions do not say: the clean test of metadata evolution."""
