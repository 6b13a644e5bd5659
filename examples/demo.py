"""From nothing to a trained model: train on the Adding problem, evaluate, predict ten sequences, and look inside.

    python examples/demo.py [--length 256] [--steps 1500]

Every position holds a number from (-1, 1) and a mark; two positions are marked, and the target is half plus a quarter
of the sum of their numbers. The paper counts a prediction as wrong if it is off by 0.04 or more.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console

import paramixer as pm
from paramixer.cli import main as paramixer


def main(arguments: list[str] | None = None) -> Path:
    """Do it all, and return the run folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args(arguments)
    console = Console()

    def run(*words: object) -> None:
        console.print(f"\n$ paramixer {' '.join(map(str, words))}", style="bold", highlight=False, soft_wrap=True)
        if paramixer([str(word) for word in words]) != 0:
            raise SystemExit(1)

    number = 1
    while (folder := Path("runs") / f"demo-{number}").exists():
        number += 1
    settings = {
        "data.validation": 1000,
        "data.test": 1000,
        # The paper's model; near the identity and with a learning rate that falls it needs a fraction of the steps.
        "init.name": "identity",
        "training.learning_rate": 5e-3,
        "training.schedule": "cosine",
        "training.warmup": 100,
        "training.steps": options.steps,
        "training.evaluate_every": 100,
    }
    assignments = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    run("train", "adding", "--length", options.length, "--recipe", "paper", *assignments, "--out", folder)
    run("evaluate", folder)

    task = pm.data.load("adding", length=options.length, test=10)
    rows = [{"sequence": task.test[index].inputs.tolist()} for index in range(10)]
    (folder / "ten.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run("predict", folder, folder / "ten.jsonl", "--text", "sequence", "--out", folder / "predictions.jsonl")
    predictions = [json.loads(line) for line in (folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    for row, target in zip(predictions, task.test.targets, strict=True):
        console.print(f"predicted {row['prediction']:.3f}, true {target:.3f}")
    run("explain", folder, "--index", 0, "--out", folder / "explanation")
    run("report", folder, "--out", folder / "report.html")
    console.print(f"\neverything is in {folder}", highlight=False, soft_wrap=True)
    return folder


if __name__ == "__main__":
    main()
