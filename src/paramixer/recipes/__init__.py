"""Which settings a model is built and trained with."""
