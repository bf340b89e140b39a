"""JSON Schema for engines that decode under a grammar."""
