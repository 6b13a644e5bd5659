"""``python -m paramixer`` is the command ``paramixer``."""

import sys

from paramixer.cli import main

if __name__ == "__main__":
    sys.exit(main())
