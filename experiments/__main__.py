"""``python -m experiments NAME``: a table or figure of the paper."""

# No postponed annotations: the command line reads the types.
import sys
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from experiments.reproduce import Name, Options, reproduce
from paramixer.cli.dispatch import run_app

app = App(
    name="python -m experiments",
    default_parameter=Parameter(negative=()),
    help_format="plaintext",
    result_action="return_value",
    version_flags=[],
)


@app.default
def run(name: Name, /, *, options: Annotated[Options, Parameter(name="*")] = Options()) -> None:  # noqa: B008
    """Reproduce a table or figure of the paper: its runs, their records, and the table with the paper's numbers.

    Args:
        name: which one; "page" only writes the page of results from the records.
        options: how.
    """
    reproduce(name, options, Console())


def main(words: list[str] | None = None) -> int:
    """Run the command; returns 0, or 2 after a mistake of the caller, printed in one line, or 130 after Ctrl-C."""
    return run_app(app, "experiments", words)


if __name__ == "__main__":
    sys.exit(main())
