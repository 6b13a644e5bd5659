"""What the walkthroughs share: where data is found, commands that are run and shown, and the record of all that."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# What the commands of a walkthrough are given, at full scale and with --quick.
MINUTES, QUICK_MINUTES = 5, 0.02


class DataMissingError(Exception):
    """A walkthrough cannot run here: its data or a program that makes it is missing."""


class Walkthrough:
    """A folder in which commands are run as a user would type them; what they print is shown and kept."""

    def __init__(self, name: str, *, quick: bool = False, folder: Path | None = None) -> None:
        """Make the folder.

        Args:
            name: of the walkthrough.
            quick: whether to do everything at a toy scale.
            folder: a new folder to work in; by default one below runs/walkthroughs.
        """
        self.name, self.quick = name, quick
        self.minutes: float = QUICK_MINUTES if quick else MINUTES
        self.folder = folder or _name_folder(name)
        self.folder.mkdir(parents=True)
        self._begin = time.monotonic()
        self._steps: list[dict[str, Any]] = []
        self._runs: list[dict[str, Any]] = []

    def explain(self, text: str) -> None:
        """Print a paragraph about what comes next."""
        text = " ".join(text.split())
        self._steps.append({"text": text})
        print(f"\n{text}", flush=True)

    def run(self, command: str) -> list[str]:
        """Run a line of shell in the folder and return the lines that it prints; stop where it fails."""
        print(f"\n$ {command}", flush=True)
        begin, lines = time.monotonic(), []
        # The paramixer of this Python comes first.
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        with subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line.rstrip())
                print(lines[-1], flush=True)
        self._steps.append({"command": command, "output": lines, "seconds": round(time.monotonic() - begin, 1)})
        if process.returncode != 0:
            raise SystemExit(f"{self.name}: this command failed with code {process.returncode}: {command}")
        return lines

    def train(self, title: str, arguments: str, run: str) -> Path:
        """Train for the minutes of the walkthrough, and keep the result.

        Args:
            title: of the task, for the table of results.
            arguments: what follows ``paramixer train``.
            run: the folder in which the run will be.
        """
        self.run(f"paramixer train {arguments} --minutes {self.minutes:g}")
        record = json.loads((self.folder / run / "record.json").read_text(encoding="utf-8"))
        self._runs.append({"title": title, "sizes": _count_sequences(self.folder / run), **_choose_fields(record)})
        return self.folder / run

    def document(self) -> dict[str, Any]:
        """Return the record of the walkthrough."""
        from paramixer import machine

        return {
            "format": 1,
            "walkthrough": self.name,
            "minutes": self.minutes,
            "commit": machine.commit(),
            "machine": self._runs[0]["machine"] if self._runs else machine.describe_machine(),
            "seconds": round(time.monotonic() - self._begin, 1),
            "runs": [{name: value for name, value in run.items() if name != "machine"} for run in self._runs],
            "steps": self._steps,
        }


def start(name: str, description: str | None, arguments: list[str] | None = None) -> Walkthrough:
    """Return a walkthrough with what the command line asks for.

    Args:
        name: of the walkthrough.
        description: the docstring of its script, for --help.
        arguments: of the command line; by default those of the process.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a handful of sequences for seconds, to see that it works")
    parser.add_argument("--folder", type=Path, help="a new folder to work in")
    options = parser.parse_args(arguments)
    if options.folder and options.folder.exists():
        parser.error(f"{options.folder} exists; give a new folder, or remove it")
    return Walkthrough(name, quick=options.quick, folder=options.folder)


def find_data(name: str) -> Path:
    """Return the file or folder of this name in PARAMIXER_DATA, or else in ../shared/data beside this project."""
    given = os.environ.get("PARAMIXER_DATA")
    folder = Path(given) if given else ROOT.parent / "shared" / "data"
    if not (folder / name).exists():
        raise DataMissingError(f"there is no {name} in {given or '../shared/data'}; name its folder in PARAMIXER_DATA")
    return folder / name


def main(walk: Any) -> None:
    """Run a walkthrough from the command line; where its data is missing, say so."""
    try:
        walk()
    except DataMissingError as error:
        raise SystemExit(f"skipped: {error}") from None


def _name_folder(name: str) -> Path:
    number = 1
    while (folder := Path("runs") / "walkthroughs" / f"{name}-{number}").exists():
        number += 1
    return folder


def _choose_fields(record: dict[str, Any]) -> dict[str, Any]:
    metric, baseline = record["metric"], record["baseline"]
    chosen = {name: record[name] for name in ("fingerprint", "metric", "majority", "steps", "stopped", "verdict")}
    return {
        **chosen,
        "test": record["test"][metric],
        "interval": record["intervals"].get(metric),
        "baseline": {name: baseline[name] for name in ("name", "test", "interval", "guess", "seconds", "fitted")},
        "parameters": record["parameters"],
        "length": record["model"]["length"],
        "seconds": record["seconds"],
        "machine": record["machine"],
    }


def _count_sequences(run: Path) -> dict[str, int]:
    from paramixer.training.runs.run import open_task

    return {name: len(split) for name, split in open_task(run).splits.items()}
