"""The life cycle of proposals: states, who may bring them on, and what is written when."""
