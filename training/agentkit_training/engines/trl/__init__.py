"""TRL's ``GRPOTrainer`` as an engine: what it reads, what it is told, and what it tells back."""
