"""1. The model that learns: weights, tokenizer, precision, adapters."""
