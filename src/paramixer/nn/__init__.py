"""Modules: configuration, embedding, blocks, pooling and the whole model."""
