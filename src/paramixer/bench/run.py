"""One benchmark from options to record: measure on so many threads, write JSON and SVG, print the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from paramixer.bench import plot, record, tables
from paramixer.bench.progress import Say, shown
from paramixer.bench.settings import Settings, threads
from paramixer.machine import commit, serving_engine


def run(what: str, measure: Callable[[Any, Say], dict[str, Any]], options: Settings, console: Console) -> Path:
    """Do it all; returns where the record is. An engine asked for by name that cannot serve is the caller's mistake."""
    try:
        serving_engine()
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    # Asked for now, so that the record names the code that ran and not what was committed meanwhile.
    commit()
    start = time.perf_counter()
    with threads(options.threads):
        with shown(console) as say:
            measured = measure(options, say)
        made = record.make(what, options, measured, time.perf_counter() - start)
    path = record.write(made, options.out)
    plot.draw(made, path.with_suffix(".svg"))
    console.print(tables.on_terminal(made))
    console.print(f"written: {path} and {path.with_suffix('.svg').name}", highlight=False, soft_wrap=True)
    return path
