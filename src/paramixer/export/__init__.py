"""Models as files that run without this package: ONNX and torch.export programs, with their preprocessing."""
