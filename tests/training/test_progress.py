"""What a user sees while a model trains."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from paramixer.training.callbacks import progress
from paramixer.training.callbacks.progress import ConsoleDisplay
from paramixer.training.fit import fit
from paramixer.training.options import TrainingOptions
from tests.training import tiny

# 30 sequences in batches of 6: 5 steps per epoch.
OPTIONS = TrainingOptions(epochs=20, batch=6, learning_rate=0.01)


class Clock:
    """A second passes with every look at it."""

    def __init__(self, start: float = 0.0, tick: float = 1.0) -> None:
        self.now, self.tick = start, tick

    def monotonic(self) -> float:
        self.now += self.tick
        return self.now


def train(console: Console, options: TrainingOptions = OPTIONS) -> None:
    fit(tiny.model(), tiny.task(), options, display=ConsoleDisplay(console))


def test_lines_of_a_log_have_epochs_steps_losses_metric_and_time_left():
    output = io.StringIO()
    train(Console(file=output, width=80))
    lines = [line for line in output.getvalue().splitlines() if line.startswith("epoch")]
    assert len(lines) == 20
    pattern = r"epoch {0}/20, step {1}/100: training loss \d+\.\d{{4}}, validation loss \d+\.\d{{4}}, "
    pattern += r"error \d\.\d{{4}}( \(kept\))?, \d+:\d\d left"
    for number, line in enumerate(lines, 1):
        assert re.fullmatch(pattern.format(number, 5 * number), line), line
    assert "(kept)" in lines[0]
    assert lines[-1].endswith(", 0:00 left")


def test_lines_of_steps_and_of_evaluations_count_epochs_alike(monkeypatch):
    monkeypatch.setattr(progress, "time", Clock())
    monkeypatch.setattr(progress, "_LINE", 0.5)
    output = io.StringIO()
    train(Console(file=output, width=80))
    epochs = re.findall(r"^epoch (\d+)/20, step (\d+)/100: training loss", output.getvalue(), re.MULTILINE)
    assert len(epochs) > 100
    assert all(int(epoch) == -(-int(step) // 5) for epoch, step in epochs)
    assert "tokens/s" in output.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_the_line_of_a_terminal_is_whole(monkeypatch, width):
    # Ten hours are left, the longest time that is likely.
    monkeypatch.setattr(progress, "time", Clock(tick=200.0))
    lines: list[str] = []
    update = progress.Progress.update

    def render(bars, task, **fields):
        update(bars, task, **fields)
        plain = Console(file=io.StringIO(), width=width)
        plain.print(bars.make_tasks_table([bar for bar in bars.tasks if bar.id == task]))
        lines.append(plain.file.getvalue().rstrip())

    monkeypatch.setattr(progress.Progress, "update", render)
    train(Console(file=io.StringIO(), force_terminal=True, width=width))
    lines = [line for line in lines if line.startswith("epoch") and "(validation)" in line]
    assert len(lines) > 50
    for line in lines:
        assert "…" not in line
        assert "\n" not in line
        assert len(line) <= width
        assert re.match(r"epoch \d+/20 +[━╸╺ ]{10} loss \d+\.\d{4}/\d+\.\d{4} \(validation\), ", line), line
        assert re.search(r", (\d+:)?\d+:\d\d left$", line), line
    assert any("tokens/s" in line for line in lines) == (width == 120)
    assert any(re.match(r"epoch 1/20", line) for line in lines)


def test_a_long_run_fits_into_80_columns():
    pair = progress._describe_pair(999.12345, 123456.0, "val")
    line = progress._join(pair, "100:00:00 left")
    assert len("epoch 10000/10000") + progress._BAR + 2 + len(line) <= 80
