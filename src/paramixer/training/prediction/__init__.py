"""Answers of a trained model to raw inputs, in Python and for whole files."""
