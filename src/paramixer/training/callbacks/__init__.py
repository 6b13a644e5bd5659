"""What surrounds the training loop: evaluation, stopping, checkpoints, logs, displays and signals."""
