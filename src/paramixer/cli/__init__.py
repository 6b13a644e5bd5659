"""The command ``paramixer``. This module imports only sys, so that Ctrl-C is handled from the first import on."""

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Returns 0, or 2 for a mistake of the caller, which is printed in one line, or 130 after Ctrl-C.

    Args:
        arguments: the words after ``paramixer``; None for those of this process.
    """
    try:
        from paramixer.cli.interrupts import handle_interrupts

        with handle_interrupts(until_exit=arguments is None):
            from paramixer.cli.dispatch import run

            return run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt as interrupt:
        print(f"paramixer: {str(interrupt) or 'interrupted'}", file=sys.stderr)
        return 130
