"""What the command line library says about a wrong command line, as one line that names the remedy."""

from __future__ import annotations

from cyclopts import CycloptsError, UnknownOptionError, UnusedCliTokensError


def describe(error: CycloptsError) -> str:
    """Return the error in one line."""
    error.verbose = False
    command = " ".join(["paramixer", *(error.command_chain or [])])
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"{' '.join(error.unused_tokens)!r} is one word too many; see {command} --help"
    if isinstance(error, UnknownOptionError) and tuple(error.command_chain or ()) == ("train",):
        name = error.token.keyword or ""
        hint = _suggest_key(name.lstrip("-").replace("-", "_"))
        if hint is not None:
            return f"Unknown option: {name}. It is a setting: --set {hint}=VALUE"
    return str(error)


def _suggest_key(name: str) -> str | None:
    """Return the key of this name, or None; one edit away from a flag, the flag is what was meant."""
    from paramixer.cli.keys import find_key, known_keys

    return find_key(name, known_keys())
