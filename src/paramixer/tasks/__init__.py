"""The paper's tasks: raw data in, tensors out. A task knows no model."""
