"""9. Out of training, into the runtime: adapters, weights and the evolved library."""
