"""Errors that a caller can mend; the command line prints them in one line. Errors of arguments are ValueErrors."""

from __future__ import annotations


class TrainingError(RuntimeError):
    """Training cannot go on, such as a loss that is not finite; the message names the remedy."""


class BackendError(RuntimeError):
    """A backend that was asked for by name cannot serve a call; the message says why."""


class MissingExtraError(ImportError):
    """A package is missing that comes with an extra; the message names the extra."""
