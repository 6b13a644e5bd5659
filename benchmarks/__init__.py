"""Speed, memory and scaling of the backends, written down as records: ``python -m benchmarks``."""
