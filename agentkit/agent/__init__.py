"""4. The loop: retrieve, ask the model, refine, validate, execute, observe."""
