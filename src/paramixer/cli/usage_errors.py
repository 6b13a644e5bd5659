"""What the command line library says about a wrong command line, as one line that names the remedy."""

from __future__ import annotations

from cyclopts import CycloptsError, UnknownOptionError, UnusedCliTokensError


def describe(error: CycloptsError) -> str:
    """Return the error in one line."""
    error.verbose = False
    command = " ".join(["paramixer", *(error.command_chain or [])])
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"{' '.join(error.unused_tokens)!r} is one word too many; see {command} --help"
    message = str(error)
    option = (error.token.keyword or error.token.value) if isinstance(error, UnknownOptionError) else ""
    if option and command == "paramixer train":
        from paramixer.cli.keys import known_keys

        # Flags of earlier versions, and names of settings that are no flags, such as --steps or --model.hidden.
        name = option.lstrip("-").replace("-", "_")
        keys = [key for key in known_keys() if name in (key, key.rpartition(".")[2])]
        if keys:
            return f"{message.partition(' Did you')[0]} It is a setting: --set {keys[0]}=VALUE"
    return message
