"""The baselines of the paper's tables, built from the same parts as Paramixer; see :mod:`.registry`."""
