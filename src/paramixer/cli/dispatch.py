"""Parse the words of a command line, call the command, and print a mistake of the caller in one line."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from paramixer.errors import BackendError, MissingExtraError, TrainingError
from paramixer.extras import describe_missing, needed_for

if TYPE_CHECKING:
    from cyclopts import App

# What a caller or a machine can get wrong. Every other exception is a bug and keeps its traceback.
_USER_ERRORS = (ValueError, OSError, BackendError, TrainingError, MissingExtraError)


def run(words: list[str]) -> int:
    """Run the command and return the exit code of the process."""
    try:
        with needed_for("the command line"):
            from cyclopts import CycloptsError

            from paramixer.cli.app import build_app
        try:
            build_app()(words, print_error=False, exit_on_error=False)
            sys.stdout.flush()
        except CycloptsError as error:
            from paramixer.cli.usage_errors import describe

            return _fail(describe(error))
    except BrokenPipeError:
        # The reader has gone, as in `paramixer data list | head -1`. Nothing may be flushed into the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except ModuleNotFoundError as error:
        sentence = describe_missing(error, f"paramixer {words[0] if words else ''}".strip())
        if sentence is None:
            raise
        return _fail(sentence)
    except _USER_ERRORS as error:
        return _fail(str(error))
    return 0


def run_app(app: App, name: str, words: list[str] | None) -> int:
    """Run another command line of the project, such as ``python -m benchmarks``, and return its exit code."""
    from cyclopts import CycloptsError

    try:
        app(words, print_error=False, exit_on_error=False)
    except KeyboardInterrupt as interrupt:
        print(f"{name}: {str(interrupt) or 'interrupted'}", file=sys.stderr)
        return 130
    except (CycloptsError, *_USER_ERRORS) as error:
        return _fail(str(error), name)
    return 0


def _fail(message: str, name: str = "paramixer") -> int:
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
    return 2
