"""The rivals of the paper's tables, each behind the interface of a Paramixer block; see :mod:`.registry`."""
