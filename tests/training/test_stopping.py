"""When user files are evaluated, when training stops, and what is said about overfitting."""

from __future__ import annotations

import dataclasses
import io
import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rich.console import Console

import paramixer as pm
from paramixer.data.splits import SPLITS
from paramixer.data.storage.in_memory import MemorySequences
from paramixer.data.task import Task, TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.training import loop, timing
from paramixer.training.callback import Callback, Interrupted, Progress
from paramixer.training.callbacks.evaluation import Evaluation, GrowingSteps
from paramixer.training.callbacks.progress import ConsoleDisplay, Display
from paramixer.training.optimizer import cooling_end, learning_rate
from paramixer.training.options import TrainingOptions
from paramixer.training.recipe import resolve_training
from paramixer.training.sizing import describe_budget
from paramixer.training.timing import measure_step
from tests.training import tiny


def _steps(epoch, cost, last=2000):
    growing = GrowingSteps(epoch, cost)
    return [step for step in range(1, last) if growing.includes(step)]


def test_evaluations_begin_early_and_come_at_growing_distances_up_to_an_epoch():
    steps = _steps(epoch=200, cost=5)
    assert steps[:4] == [20, 40, 60, 80]
    distances = [after - before for before, after in pairwise(steps)]
    assert distances == sorted(distances)
    assert distances[-1] == 200


@pytest.mark.parametrize("cost", [1, 30, 300])
def test_evaluations_take_an_eighth_of_the_time_at_most(cost):
    assert len(_steps(100, cost)) * cost / 3 <= 0.125 * 2000


def test_a_resumed_run_is_evaluated_at_the_same_steps():
    growing = GrowingSteps(50, 10)
    assert [step for step in range(333, 2000) if growing.includes(step)] == [s for s in _steps(50, 10) if s >= 333]


def _evaluate(losses, training, metrics=None, task=None, patience=0):
    """Evaluations of these losses, with the training loss of each; returns the progress and what was said.

    The metric, an error, never improves by default, nor does a mean squared error that is not the loss.
    """

    class Listening(Display):
        def __init__(self):
            self.notes = []

        def on_note(self, text):
            self.notes.append(text)

    display, progress = Listening(), Progress()
    evaluation = Evaluation(task or tiny.task(), None, None, display)
    loop = SimpleNamespace(progress=progress, options=TrainingOptions(patience=patience), callbacks=())
    name = (task or tiny.task()).metric
    for step, (loss, train, value) in enumerate(zip(losses, training, metrics or [0.5] * len(losses), strict=True), 1):
        progress.step, progress.training_loss = step, train
        evaluation.measure = lambda *_, loss=loss, value=value: {"loss": loss, name: value}
        evaluation._evaluate(loop)
    return progress, display.notes


def _values():
    """A task of values with a variance of 1."""
    targets = np.tile([-1.0, 1.0], 20)
    splits = {name: MemorySequences([np.ones(3, np.int64)] * 40, targets) for name in SPLITS}
    letters = Vocabulary.from_characters("ab")
    info = TaskInfo(name="own", preset="text", metric="mse", target="value", length=3, vocabulary=letters)
    return Task.from_splits(info, splits, "0" * 64)


def test_overfitting_is_said_once_and_with_a_remedy():
    progress, notes = _evaluate([0.6, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0], [0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02])
    assert len(notes) == 1
    assert "training.weight_decay" in notes[0]
    assert progress.flat == 5


def test_noise_and_a_loss_that_rises_with_that_of_training_are_no_overfitting():
    assert not _evaluate([0.50, 0.48, 0.52, 0.49, 0.51, 0.50, 0.49], [0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1])[1]
    assert not _evaluate([0.5, 0.6, 0.8, 1.0, 1.2, 1.4], [0.5, 0.6, 0.8, 1.0, 1.2, 1.4])[1]


def test_losses_near_zero_and_a_metric_that_still_improves_are_no_overfitting():
    rising = [0.0037, 0.0016, 0.004, 0.02, 0.03, 0.02, 0.03]
    falling = [0.02, 0.003, 0.002, 0.001, 0.0005, 0.0003, 0.0002]
    assert not _evaluate(rising, falling)[1]
    rising = [0.6, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    falling = [0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02]
    assert not _evaluate(rising, falling, [0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15])[1]
    # A regression on its way down, at a hundredth of the mean's error.
    noisy = [0.5, 0.1, 0.01, 0.007, 0.006, 0.0075, 0.009, 0.009, 0.009]
    assert not _evaluate(
        noisy, [loss / 2 for loss in [0.5, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01, 0.009, 0.008]], noisy, _values()
    )[1]


def test_remedies_for_values_are_not_those_for_classes():
    losses = [0.6, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    (note,) = _evaluate(losses, [0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02], losses, _values())[1]
    assert "training.weight_decay" in note
    assert "label_smoothing" not in note


@pytest.mark.parametrize("kind", ["class", "value"])
def test_a_loss_that_falls_towards_zero_without_end_is_no_improvement(kind):
    losses = [0.5, 0.1, *(1e-5 / 2**step for step in range(30))]
    task, metrics = (tiny.task(), [0.0] * 32) if kind == "class" else (_values(), losses)
    progress, _ = _evaluate(losses, losses, metrics, task, patience=10)
    # Three evaluations after the last large loss the mean is small, too.
    assert progress.cooling == 2 + 3 + 10
    # The weights are still the best ones.
    assert progress.best_step == len(losses)


def test_the_last_weights_that_are_said_to_be_kept_are_restored():
    seen = []

    class Watching(Callback):
        def on_evaluation(self, loop, metrics, improved):
            seen.append((improved, loop.progress.step))

    display = io.StringIO()
    options = dataclasses.replace(tiny.OPTIONS, evaluate_every=1, schedule="cosine")
    outcome = pm.fit(
        tiny.model(), tiny.task(), options, callbacks=[Watching()], display=ConsoleDisplay(Console(file=display))
    )
    assert outcome.best_step == [step for improved, step in seen if improved][-1]
    lines = [line for line in display.getvalue().splitlines() if "(kept)" in line]
    assert f"step {outcome.best_step}/" in lines[-1]
    assert f"weights of step {outcome.best_step} are kept: validation error" in display.getvalue()


def test_a_loss_that_falls_slowly_is_an_improvement():
    losses = [0.5 * 0.99**step for step in range(60)]
    assert _evaluate(losses, losses, losses, _values(), patience=10)[0].cooling is None


def test_patience_is_the_default_of_user_files_and_zero_turns_it_off(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["text,label", *(f"text {n},{n % 2}" for n in range(60))]))
    task = pm.data.load(path)
    assert (resolve_training(task).patience, resolve_training(task).evaluate_every) == (10, "growing")
    assert resolve_training(task, given={"patience": 0}).patience == 0
    assert resolve_training(tiny.task()).patience is None
    options = dataclasses.replace(tiny.OPTIONS, learning_rate=1e-9, steps=20, evaluate_every=1, patience=0)
    assert pm.fit(tiny.model(), tiny.task(), options).stopped == "all steps are done"


def test_minutes_end_with_a_learning_rate_of_zero_however_few_steps_there_are():
    options = TrainingOptions(minutes=1, learning_rate=1.0, schedule="cosine", warmup=50)
    rates = [learning_rate(options, step, None, step / 20) for step in range(20)]
    assert max(rates) > 0.9
    assert rates[-1] < 0.01
    assert rates[0] == pytest.approx(0.02)
    # Where steps are the budget nothing changes.
    assert learning_rate(options, 9, 400) == pytest.approx(0.2)


STALLING = dataclasses.replace(tiny.OPTIONS, schedule="cosine", warmup=0, learning_rate=1e-12, steps=400, patience=2)


def test_without_improvement_the_learning_rate_first_falls_to_zero():
    rates = [learning_rate(STALLING, step, 400, cooling=100) for step in range(100, 126)]
    assert rates[0] == learning_rate(STALLING, 100, 400)
    assert all(after < before for before, after in pairwise(rates))
    assert rates[-1] == 0
    assert learning_rate(STALLING, 100, 400, cooling=None) == rates[0]

    seen = []

    class Watching(Callback):
        def on_step(self, loop):
            seen.append((loop.progress.cooling, loop.optimizer.param_groups[0]["lr"]))

    outcome = pm.fit(tiny.model(), tiny.task(), STALLING, callbacks=[Watching()])
    assert outcome.stopped == "no improvement in 2 evaluations"
    (start,) = {cooling for cooling, _ in seen} - {None}
    assert outcome.steps == len(seen) == cooling_end(start, STALLING) == start + math.ceil(start / 4)
    # No step at zero: the first one that would have it is not taken.
    assert 0 < seen[-1][1] < STALLING.learning_rate / 2
    constant = dataclasses.replace(STALLING, schedule="constant")
    assert pm.fit(tiny.model(), tiny.task(), constant).steps == start


def test_a_run_that_is_interrupted_while_its_rate_falls_ends_with_the_same_bits(tmp_path):
    class Impatient(Callback):
        def on_step(self, loop):
            if loop.progress.cooling is not None:
                loop.interrupt("enough")

    whole, outcome = tiny.run(tmp_path / "whole", STALLING)
    with pytest.raises(Interrupted, match="enough"):
        pm.fit(tiny.model(), tiny.task(), STALLING, folder=tmp_path / "run", seed=5, callbacks=[Impatient()])
    resumed, again = tiny.run(tmp_path / "run", STALLING, resume=True)
    assert again.steps == outcome.steps
    assert all(map(torch.equal, whole.parameters(), resumed.parameters()))


def test_timing_a_step_touches_neither_the_model_nor_random_numbers():
    model, task = tiny.model(), tiny.task()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    state = torch.get_rng_state()
    seconds = measure_step(model, task, resolve_training(task, given=tiny.OPTIONS), seed=0)
    assert 0 < seconds < math.inf
    assert torch.equal(state, torch.get_rng_state())
    assert all(map(torch.equal, before, model.parameters()))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_time_of_a_step_is_that_of_sequences_of_average_length(monkeypatch):
    sequences = [np.ones(length, np.int64) for length in [10] * 60 + [400] * 20]
    splits = {name: MemorySequences(sequences, np.arange(80) % 2) for name in SPLITS}
    info = TaskInfo(
        name="own",
        preset="text",
        metric="accuracy",
        target="class",
        length=400,
        classes=("a", "b"),
        vocabulary=Vocabulary.from_characters("ab"),
    )
    task = Task.from_splits(info, splits, "0" * 64)
    config = pm.ParamixerConfig(
        length=400, outputs=2, vocabulary=len(task.vocabulary), channels=16, hidden=8, padding="length"
    )
    clock = SimpleNamespace(now=0.0)

    def call_model(model, batch):
        clock.now += 0.001 * float(batch.lengths.sum())
        return loop.call_model(model, batch)

    monkeypatch.setattr(timing, "call_model", call_model)
    monkeypatch.setattr(timing, "time", SimpleNamespace(monotonic=lambda: clock.now))
    options = resolve_training(task, given=TrainingOptions(batch=4, bucket=True))
    seconds = measure_step(pm.Paramixer(config), task, options, seed=0)
    assert seconds == pytest.approx(0.001 * 4 * (60 * 10 + 20 * 400) / 80)


def test_the_budget_is_printed_with_the_flags_that_change_it():
    task = tiny.task()
    line = describe_budget(task, TrainingOptions(epochs=10, batch=4, patience=10), 30.0)
    for part in ("80 steps of 30 s (10 epochs), about 40 minutes", "after 10 evaluations", "--minutes", "patience=0"):
        assert part in line
    assert "2 minutes, up to 60 steps of 2 s" in describe_budget(task, TrainingOptions(minutes=2, batch=4), 2.0)
    # 8 steps are an epoch.
    line = describe_budget(task, TrainingOptions(minutes=600, batch=4), 0.015)
    assert "2,400,000 steps of 0.015 s (300,000 epochs)" in line
    assert "(1,250 epochs), about 278 hours" in describe_budget(task, TrainingOptions(steps=10_000, batch=4), 100.0)
