"""The Adding problem in a training loop of one's own: read two marked numbers out of a long sequence and add them.

    python examples/adding.py [--length 128] [--steps 2000] [--out runs/adding]

Every position holds a number from (-1, 1) and a mark; two positions are marked, and the target is half plus a quarter
of the sum of their numbers. The paper counts a prediction as wrong if it is off by 0.04 or more.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch.utils.data import DataLoader

import paramixer as pm

# The paper's recipe for this task: src/paramixer/recipes/paper/adding.yaml.
BATCH, LEARNING_RATE, CLIP = 40, 1e-3, 1.0
# A prediction is wrong if it is off by this much or more.
TOLERANCE = 0.04


@torch.no_grad()
def error(model: pm.Paramixer, batches: DataLoader) -> float:
    """Percent of the sequences whose prediction is off by 0.04 or more."""
    model.eval()
    wrong = torch.cat([(model(inputs) - targets).abs() >= TOLERANCE for inputs, targets in batches])
    model.train()
    return 100 * float(wrong.float().mean())


def main(arguments: list[str] | None = None) -> float:
    """Train, print the error as it falls, save the model; return the last error in percent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("runs/adding"))
    options = parser.parse_args(arguments)

    console = Console()
    generator = torch.Generator().manual_seed(0)
    # The paper's model, initialized near the identity: it learns in half the steps.
    model = pm.Paramixer(pm.preset("adding", length=options.length), init="identity", generator=generator)
    task = pm.data.load("adding", length=options.length, train=options.steps * BATCH, validation=1000)
    held_out = DataLoader(task.validation, batch_size=250)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 10 * LEARNING_RATE, options.steps, pct_start=0.1)
    names = ", ".join(name for name, availability in pm.backends().items() if availability)
    console.print(f"Adding problem, N = {options.length}: {sum(p.numel() for p in model.parameters())} parameters")
    console.print(f"backends: {names}; {torch.get_num_threads()} threads")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    wrong = error(model, held_out)
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(f"error {wrong:5.1f} %", total=options.steps)
        for step, (inputs, targets) in enumerate(DataLoader(task.train, BATCH), 1):
            loss = F.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            schedule.step()
            if step % 100 == 0 or step == options.steps:
                wrong = error(model, held_out)
                console.print(f"step {step:5d}  loss {loss.item():.5f}  error {wrong:5.1f} %")
            progress.update(bar, advance=1, description=f"error {wrong:5.1f} %")
    model.save_pretrained(options.out)
    console.print(f"saved to {options.out}: pm.Paramixer.from_pretrained({str(options.out)!r})")
    return wrong


if __name__ == "__main__":
    main()
