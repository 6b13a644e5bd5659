"""Types of flags."""

from typing import Annotated

from cyclopts import Parameter

Switch = Annotated[bool, Parameter(show_default=False)]
"""A flag without a value."""
