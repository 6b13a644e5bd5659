"""``python -m experiments NAME``: a table or figure of the paper."""

# No postponed annotations: the command line reads the types.
import sys
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from experiments.reproduce import Name, Options, reproduce

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
    try:
        app(words, print_error=False, exit_on_error=False)
    except KeyboardInterrupt as interrupt:
        print(f"experiments: {str(interrupt) or 'interrupted'}", file=sys.stderr)
        return 130
    except (CycloptsError, ValueError, OSError) as error:
        print(f"experiments: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
