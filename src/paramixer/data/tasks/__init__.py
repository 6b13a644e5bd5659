"""One module or package for each task; see :mod:`paramixer.data.registry`."""
