"""Training, evaluation and prediction: one loop from a laptop to many machines, one folder a run, nothing lost."""
