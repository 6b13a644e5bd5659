"""Runs: settings in, a folder with record, metrics, checkpoints and the best model out."""
