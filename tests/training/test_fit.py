"""The loop: what is chosen by what, when it stops, and that stopping changes nothing."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import sys
import types

import numpy as np
import pytest
import torch

import paramixer as pm
from paramixer.data.storage.in_memory import MemorySequences
from paramixer.errors import TrainingError
from paramixer.training import fit as fitting
from paramixer.training.assessment.metrics import compute_loss
from paramixer.training.callback import Callback, Interrupted
from paramixer.training.callbacks.evaluation import Evaluation
from paramixer.training.callbacks.progress import Display
from paramixer.training.fit import fit
from paramixer.training.optimizer import learning_rate
from paramixer.training.options import TrainingOptions
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.run import resume_run
from training import tiny


def timeless(folder) -> list[dict[str, object]]:
    """The lines of a run without what the clock says."""
    clocked = ("seconds", "busy")
    return [{key: line[key] for key in line if key not in clocked} for line in RunFolder(folder).read_lines()]


def same_weights(one, other) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_a_run_leaves_all_it_promises(tmp_path):
    model, outcome = tiny.run(tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert outcome.steps == 12
    assert outcome.stopped == "all steps are done"
    kinds = [(line["kind"], line["step"]) for line in folder.read_lines()]
    assert [step for kind, step in kinds if kind == "train"] == [3, 6, 9, 12]
    assert [step for kind, step in kinds if kind == "validation"] == [4, 8, 12]
    record = folder.read_record()
    assert record["finished"]
    assert record["fingerprint"] == tiny.task().fingerprint
    assert record["test"] == outcome.test
    assert record["engine"] in pm.backends()
    assert [line["step"] for line in record["epochs"]] == [4, 8, 12]
    best = pm.Paramixer.from_pretrained(folder.model)
    assert same_weights(best, model), "the model that was trained ends as the best one"
    assert len(list(folder.state.iterdir())) == 1


@pytest.mark.parametrize(
    ("errors", "losses", "step"),
    [([0.5, 0.2, 0.9], [3, 2, 1], 8), ([0.5, 0.0, 0.0], [3, 2, 1], 12), ([0.5, 0.0, 0.0], [3, 1, 2], 8)],
    ids=["by metric", "of equals the smaller loss, later", "of equals the smaller loss, earlier"],
)
def test_the_model_is_chosen_on_validation_and_test_is_evaluated_once(errors, losses, step, tmp_path, monkeypatch):
    looks = []
    measure, predict = Evaluation.measure, Evaluation.predict

    def looking(self, loop, split, name):
        looks.append(name)
        return predict(self, loop, split, name)

    def watched(self, loop, split, name):
        found = measure(self, loop, split, name)
        if name == "validation":
            number = looks.count("validation") - 1
            found |= {"error": errors[number], "loss": losses[number]}
        return found

    monkeypatch.setattr(Evaluation, "measure", watched)
    monkeypatch.setattr(Evaluation, "predict", looking)
    _, outcome = tiny.run(tmp_path)
    assert looks == ["validation"] * 3 + ["test"]
    assert outcome.best_step == step
    assert outcome.validation == min(errors)


def group(model: pm.Paramixer, links: float = 0.5, head: float = 0.25) -> list[dict[str, object]]:
    """Return groups of all parameters, in another order than the model's."""
    named = dict(model.named_parameters())
    slow = {"head.linear.weight": head} | {name: links for name in named if is_link(name)}
    rest = [parameter for name, parameter in named.items() if name not in slow]
    return [*({"params": [named[name]], "lr_factor": factor} for name, factor in slow.items()), {"params": rest}]


def is_link(name: str) -> bool:
    return name.rpartition(".")[2] in ("w1", "b1", "w2", "b2")


@pytest.mark.parametrize("groups", [None, group], ids=["one group", "groups"])
@pytest.mark.parametrize("stop", [1, 4, 5, 8, 11])
def test_a_run_that_is_resumed_ends_with_the_same_bits(stop, groups, tmp_path):
    whole, outcome = tiny.run(tmp_path / "whole", groups=groups)
    tiny.run(tmp_path / "parts", dataclasses.replace(tiny.OPTIONS, steps=stop), groups=groups)
    # What was evaluated only because the run ended there is no part of the longer run.
    resumed, again = tiny.run(tmp_path / "parts", resume=True, groups=groups)
    if stop % 4 == 0:
        assert timeless(tmp_path / "parts") == timeless(tmp_path / "whole")
        assert again == outcome
        assert same_weights(whole, resumed)
    last = [json.loads((tmp_path / name / "record.json").read_text())["steps"] for name in ("whole", "parts")]
    assert last == [12, 12]
    states = [next((tmp_path / name / "state").iterdir()) / "tensors.safetensors" for name in ("whole", "parts")]
    assert states[0].read_bytes() == states[1].read_bytes()


def test_the_same_seed_gives_the_same_run_and_another_seed_another(tmp_path):
    one, _ = tiny.run(tmp_path / "one")
    two, _ = tiny.run(tmp_path / "two")
    assert same_weights(one, two)
    assert timeless(tmp_path / "one") == timeless(tmp_path / "two")
    other = tiny.model()
    fit(other, tiny.task(), tiny.OPTIONS, folder=tmp_path / "three", seed=6)
    assert timeless(tmp_path / "three") != timeless(tmp_path / "one")


def test_the_callers_random_numbers_are_left_alone(tmp_path):
    torch.manual_seed(77)
    before = torch.get_rng_state()
    tiny.run(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_accumulated_batches_are_one_large_batch(tmp_path):
    task = tiny.task(train=40)
    runs = []
    for batch, accumulate in ((8, 1), (4, 2), (2, 4)):
        model = tiny.model()
        model.dropout.p = model.blocks[0].dropout.p = 0.0
        options = TrainingOptions(steps=10, batch=batch, accumulate=accumulate, log_every=1, evaluate_every=5)
        fit(model, task, options, folder=tmp_path / f"{batch}")
        runs.append([line["loss"] for line in RunFolder(tmp_path / f"{batch}").read_lines() if line["kind"] == "train"])
    assert runs[1] == pytest.approx(runs[0], rel=1e-5)
    assert runs[2] == pytest.approx(runs[0], rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until": "error=1.0"}, "validation reached error"),
        ({"patience": 1, "learning_rate": 1e-9}, "no improvement in 1 evaluation"),
        ({"minutes": 1e-9}, "minutes are over"),
        ({"steps": None, "epochs": 1}, "all steps are done"),
    ],
)
def test_it_stops_at_the_first_limit(options, message, tmp_path):
    _, outcome = tiny.run(tmp_path, dataclasses.replace(tiny.OPTIONS, **({"steps": 400} | options)))
    assert message in outcome.stopped
    assert outcome.steps < 20


def test_ctrl_c_saves_and_a_resumed_run_ends_with_the_same_bits(tmp_path):
    class Impatient(Callback):
        def on_step(self, loop):
            if loop.progress.step == 6:
                os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    whole, _ = tiny.run(tmp_path / "whole")
    model = tiny.model()
    with pytest.raises(Interrupted, match="SIGINT"):
        fit(model, tiny.task(), tiny.OPTIONS, folder=tmp_path / "run", seed=5, callbacks=[Impatient()])
    resumed, _ = tiny.run(tmp_path / "run", resume=True)
    assert same_weights(whole, resumed)
    assert timeless(tmp_path / "run") == timeless(tmp_path / "whole")
    assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.parametrize(("split", "look"), [("validation", 1), ("validation", 2), ("validation", 3), ("test", 1)])
def test_ctrl_c_interrupts_an_evaluation(split, look, tmp_path):
    class Impatient(Display):
        looks, ticks = 0, 0

        def track(self, name, count):
            self.looks += name == split

            def tick(done):
                if name == split and self.looks == look:
                    self.ticks += 1
                    if self.ticks == 1:
                        os.kill(os.getpid(), signal.SIGINT)

            return tick

    whole, outcome = tiny.run(tmp_path / "whole")
    model, display = tiny.model(), Impatient()
    with pytest.raises(Interrupted, match="SIGINT"):
        fit(model, tiny.task(), tiny.OPTIONS, folder=tmp_path / "run", seed=5, display=display)
    assert display.ticks == 1
    assert model.training
    resumed, again = tiny.run(tmp_path / "run", resume=True)
    assert again == outcome
    assert same_weights(whole, resumed)
    assert timeless(tmp_path / "run") == timeless(tmp_path / "whole")


def test_the_logged_learning_rate_survives_an_interruption(tmp_path):
    class Impatient(Callback):
        def on_step(self, loop):
            if loop.progress.step == 5:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        fit(tiny.model(), tiny.task(), tiny.OPTIONS, folder=tmp_path, seed=5, callbacks=[Impatient()])
    # Two steps are not logged yet, and no step is left to take.
    tiny.run(tmp_path, dataclasses.replace(tiny.OPTIONS, steps=5), resume=True)
    (last,) = [line for line in RunFolder(tmp_path).read_lines() if line["kind"] == "train" and line["step"] == 5]
    assert last["learning_rate"] == tiny.OPTIONS.learning_rate


def test_a_loss_that_is_no_number_stops_and_names_the_step(tmp_path, monkeypatch):
    calls = []

    def broken(answers, targets, *more):
        calls.append(None)
        return compute_loss(answers, targets, *more) * (math.nan if len(calls) == 6 else 1)

    monkeypatch.setattr(fitting, "compute_loss", broken)
    with pytest.raises(TrainingError, match=r"the loss is nan at step 6; .*; the last good state is .*step-000000004"):
        tiny.run(tmp_path)
    monkeypatch.setattr(fitting, "compute_loss", compute_loss)
    resumed, _ = tiny.run(tmp_path, resume=True)
    whole, _ = tiny.run(tmp_path / "whole")
    assert same_weights(whole, resumed)


def test_changed_data_and_another_architecture_are_refused_on_resume(tmp_path):
    tiny.run(tmp_path)
    with pytest.raises(ValueError, match="the data has changed"):
        fit(tiny.model(), tiny.task(train=31), tiny.OPTIONS, folder=tmp_path, resume=True)
    with pytest.raises(ValueError, match="another architecture"):
        fit(tiny.model(residual="none", factors=2), tiny.task(), tiny.OPTIONS, folder=tmp_path, resume=True)
    with pytest.raises(FileNotFoundError, match="no run folder"):
        fit(tiny.model(), tiny.task(), tiny.OPTIONS, folder=tmp_path / "nowhere", resume=True)
    with pytest.raises(ValueError, match=r"had 4 sequences and would now have 8 \(1 processes\)"):
        fit(tiny.model(), tiny.task(), dataclasses.replace(tiny.OPTIONS, batch=8), folder=tmp_path, resume=True)


def test_metrics_of_another_format_are_refused(tmp_path):
    tiny.run(tmp_path)
    folder = RunFolder(tmp_path)
    first, rest = folder.metrics.read_text().split("\n", 1)
    assert json.loads(first) == {"kind": "format", "format": 1}
    folder.metrics.write_text(first.replace("1", "2") + "\n" + rest)
    with pytest.raises(ValueError, match=r"metrics.jsonl begins with .*2.*, this version of paramixer reads .*1"):
        folder.read_lines()


def test_learning_rates_are_functions_of_the_step():
    options = TrainingOptions(steps=100, learning_rate=1.0, warmup=10, schedule="cosine")
    rates = [learning_rate(options, step, 100) for step in range(100)]
    assert rates[:10] == pytest.approx([n / 10 for n in range(1, 11)])
    assert rates[10] == pytest.approx(1)
    assert rates[55] == pytest.approx(0.5)
    assert rates[99] < 0.001
    assert learning_rate(TrainingOptions(learning_rate=0.1), 12345, None) == 0.1


def test_the_learning_rate_falls_along_the_minutes_where_they_end_the_run(tmp_path):
    options = TrainingOptions(minutes=1, learning_rate=1.0, warmup=10, schedule="cosine")
    assert learning_rate(options, 0, None, 0.005) == pytest.approx(0.1, rel=1e-3)
    assert learning_rate(options, 0, None, 0.5) == pytest.approx(0.5)
    assert learning_rate(options, 10_000, None, 0.5) == pytest.approx(0.5)
    assert learning_rate(options, 75, 100, 0.25) < learning_rate(options, 75, None, 0.25)
    short = dataclasses.replace(tiny.OPTIONS, steps=None, epochs=None, minutes=0.02, schedule="cosine", log_every=1)
    outcome = fit(tiny.model(), tiny.task(), short, folder=tmp_path)
    assert outcome.stopped == "0.02 minutes are over"
    rates = [line["learning_rate"] for line in RunFolder(tmp_path).read_lines() if line["kind"] == "train"]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.1 * rates[0]


def test_parameter_groups_scale_the_learning_rate_of_their_parameters(tmp_path):
    moved = []
    for groups in (None, lambda model: group(model, 0.25, 0.0625)):
        before = tiny.model().state_dict()
        options = dataclasses.replace(tiny.OPTIONS, steps=1)
        model, _ = tiny.run(tmp_path / str(len(moved)), options, groups=groups)
        moved.append({name: tensor - before[name] for name, tensor in model.state_dict().items()})
    whole, part = moved
    for name, step in whole.items():
        share = 0.25 if is_link(name) else 0.0625 if name == "head.linear.weight" else 1.0
        assert torch.allclose(part[name], share * step, atol=1e-7), name
        assert step.any()


def test_what_is_in_no_parameter_group_is_not_trained(tmp_path):
    before = tiny.model().state_dict()
    model, _ = tiny.run(tmp_path, groups=lambda model: [{"params": model.head.parameters()}])
    changed = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"head.linear.weight", "head.linear.bias"}
    assert RunFolder(tmp_path).read_record()["parameter_groups"] == [
        {"params": ["head.linear.weight", "head.linear.bias"]}
    ]


def test_a_run_with_parameter_groups_is_resumed_with_the_same_ones_only(tmp_path):
    def with_betas(model: pm.Paramixer) -> list[dict[str, object]]:
        return [group(model)[0] | {"betas": (0.8, 0.9)}, *group(model)[1:]]

    tiny.run(tmp_path, dataclasses.replace(tiny.OPTIONS, steps=4), groups=with_betas)
    tiny.run(tmp_path, dataclasses.replace(tiny.OPTIONS, steps=8), resume=True, groups=with_betas)
    for other in (None, group):
        with pytest.raises(ValueError, match="was started with other parameter_groups; pass the same"):
            tiny.run(tmp_path, resume=True, groups=other)
    with pytest.raises(ValueError, match=r"its settings do not hold them; go on with pm.fit\(.*parameter_groups"):
        resume_run(tmp_path, steps=12)


def test_wrong_parameter_groups_are_named():
    model = tiny.model()
    for groups, message in (
        ([{"params": model.parameters(), "lr": 0.1}], "lr=0.1, which the schedule sets; give it an lr_factor"),
        ([{"params": tiny.model().parameters()}], "no parameter of the model"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(model, tiny.task(), tiny.OPTIONS, parameter_groups=groups)


@pytest.mark.slow
def test_a_compiled_model_learns_the_same(tmp_path):
    # Compiled code draws random numbers of its own; without dropout there are none.
    calm = {"embedding_dropout": 0.0, "block_dropout": 0.0}
    found = [
        fit(tiny.model(**calm), tiny.task(), options, folder=tmp_path / name)
        for name, options in (("plain", tiny.OPTIONS), ("compiled", dataclasses.replace(tiny.OPTIONS, compile=True)))
    ]
    assert found[1].test["loss"] == pytest.approx(found[0].test["loss"], abs=1e-6)
    assert found[1].test["loss"] != pytest.approx(math.log(4), abs=1e-2)


def test_tensorboard_gets_every_line_and_its_absence_is_named(tmp_path, monkeypatch):
    written = []

    class Writer:
        def __init__(self, folder):
            written.append(folder)

        def add_scalar(self, *scalar):
            written.append(scalar)

        def flush(self):
            pass

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", types.SimpleNamespace(SummaryWriter=Writer))
    tiny.run(tmp_path / "run", dataclasses.replace(tiny.OPTIONS, tensorboard=True))
    assert written[0] == str(tmp_path / "run" / "tensorboard")
    assert {(name, step) for name, _, step in written[1:]} >= {("train/loss", 3), ("validation/error", 12)}
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match="pip install 'paramixer\\[tensorboard\\]'"):
        tiny.run(tmp_path / "other", dataclasses.replace(tiny.OPTIONS, tensorboard=True))


def test_bf16_and_adamw_run(tmp_path):
    for number, more in enumerate(({"precision": "bf16"}, {"optimizer": "adamw", "weight_decay": 0.1, "clip": 1.0})):
        _, outcome = tiny.run(tmp_path / str(number), dataclasses.replace(tiny.OPTIONS, steps=4, **more))
        assert math.isfinite(outcome.test["loss"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch=0; it must be at least 1"),
        ({"minutes": math.inf}, "minutes=inf"),
        ({"until": "98"}, "METRIC=VALUE"),
        ({"optimizer": "adam", "weight_decay": 0.1}, "needs optimizer='adamw'"),
        ({"steps": "many"}, "steps='many'; it must be a whole number"),
        ({"warmup": -1}, "warmup=-1; it must be at least 0"),
    ],
)
def test_options_are_checked_where_they_are_made(options, message):
    with pytest.raises(ValueError, match=message):
        TrainingOptions(**options)


def test_sequences_without_a_pad_symbol_need_lengths(tmp_path):
    task = tiny.task()
    task.train.lengths[0] = 5
    with pytest.raises(ValueError, match="padding='length'"):
        fit(tiny.model(), task, tiny.OPTIONS, folder=tmp_path)


def test_a_run_is_not_replaced_and_a_model_must_fit_its_task(tmp_path):
    tiny.run(tmp_path)
    with pytest.raises(FileExistsError, match="there is a run in .* already"):
        tiny.run(tmp_path)
    other = pm.Paramixer(pm.ParamixerConfig(layer="paper", length=12, vocabulary=6, outputs=10, channels=6))
    with pytest.raises(ValueError, match="the model has outputs=10, order needs outputs=4"):
        fit(other, tiny.task(), tiny.OPTIONS, folder=tmp_path / "other")
    narrow = pm.Paramixer(pm.ParamixerConfig(layer="paper", length=12, vocabulary=5, outputs=4, channels=6))
    with pytest.raises(ValueError, match="the model has vocabulary=5, order has 6 symbols"):
        fit(narrow, tiny.task(), tiny.OPTIONS, folder=tmp_path / "other")


@pytest.mark.parametrize("unit", [1e9, 1e-8])
def test_values_are_learned_in_any_unit(unit):
    """Clipping at norm 1 and Adam's epsilon would otherwise stop the learning of large and of small values."""
    losses = []
    for scale in (1.0, unit):
        task = pm.data.load("adding", length=8, train=200, validation=20, test=20)
        for name, split in task.splits.items():
            scaled = MemorySequences(
                [split[index].inputs.numpy() for index in range(len(split))], scale * np.asarray(split.targets)
            )
            task = dataclasses.replace(task, **{name: scaled}, metric="mse")
        settings = pm.resolve(task, training={"steps": 40})
        outcome = pm.fit(pm.build_model(task, settings), task, settings)
        losses.append(outcome.test["mse"] / scale**2)
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
