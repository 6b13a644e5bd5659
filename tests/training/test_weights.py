"""Weights of training sequences: what they do to the loss, and where they come from."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from paramixer import data
from paramixer.data.errors import DataError
from paramixer.data.storage.in_memory import MemorySequences
from paramixer.training.assessment.metrics import compute_loss, compute_metrics
from paramixer.training.batches import Collate, TrainingBatches
from paramixer.training.callback import Callback
from paramixer.training.fit import fit
from paramixer.training.recipe import resolve_training
from paramixer.training.weights import training_weights
from tests.training import tiny


def _weigh(task, weights):
    train = task.train
    items = [train[index] for index in range(len(train))]
    sequences = MemorySequences([item.inputs.numpy() for item in items], np.asarray(train.targets), weights)
    return dataclasses.replace(task, train=sequences)


def _final_weights(task, **options):
    model = tiny.model()
    fit(model, task, dataclasses.replace(tiny.OPTIONS, **options), seed=5)
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


@pytest.mark.parametrize("targets", [torch.tensor([0, 2, 1]), torch.tensor([0.5, -1.0, 2.0])])
def test_the_loss_is_the_mean_of_weights_times_losses(targets):
    classes = targets.dtype == torch.int64
    answers = torch.randn(3, 3) if classes else torch.randn(3)
    weights = torch.tensor([0.5, 0.0, 2.5])
    each = [compute_loss(answers[i : i + 1], targets[i : i + 1]) for i in range(3)]
    assert torch.allclose(compute_loss(answers, targets, weights), (torch.stack(each) * weights).mean())


def test_equal_weights_of_any_size_train_like_none():
    task = tiny.task()
    plain = _final_weights(task)
    assert torch.allclose(plain, _final_weights(_weigh(task, np.full(30, 7.0))), atol=1e-6)
    assert not torch.allclose(plain, _final_weights(_weigh(task, np.arange(30.0))), atol=1e-3)


def test_what_has_weight_zero_is_not_learned():
    task = tiny.task()
    weights = np.ones(30)
    weights[:10] = 0
    items = [task.train[index].inputs.numpy() for index in range(30)]
    targets = np.asarray(task.train.targets).copy()
    first = dataclasses.replace(task, train=MemorySequences(items, targets, weights))
    other = targets.copy()
    other[:10] = (other[:10] + 1) % 4
    second = dataclasses.replace(task, train=MemorySequences(items, other, weights))
    assert torch.equal(_final_weights(first), _final_weights(second))


def test_balanced_classes_have_equal_sums_and_multiply_given_weights():
    task = tiny.task()
    targets = np.array([0] * 24 + [1] * 3 + [3] * 3)
    unbalanced = dataclasses.replace(task, train=MemorySequences([np.zeros(3, np.int64)] * 30, targets))
    weights = training_weights(unbalanced, balance=True)
    assert weights.mean() == pytest.approx(1)
    assert [weights[targets == name].sum() for name in (0, 1, 3)] == pytest.approx([10, 10, 10])
    given = np.where(np.arange(30) == 24, 3.0, 1.0)
    both = training_weights(
        dataclasses.replace(task, train=MemorySequences([np.zeros(3, np.int64)] * 30, targets, given)), balance=True
    )
    assert both[24] / both[25] == pytest.approx(3)
    assert both[25] / both[0] == pytest.approx(weights[25] / weights[0])


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_weights_that_make_no_sense_are_refused(bad):
    weights = np.ones(30)
    weights[4] = bad
    with pytest.raises(ValueError, match="the weight of training sequence 4 is"):
        training_weights(_weigh(tiny.task(), weights))
    with pytest.raises(ValueError, match="all training sequences have weight 0"):
        training_weights(_weigh(tiny.task(), np.zeros(30)))
    with pytest.raises(ValueError, match="give one each"):
        _weigh(tiny.task(), np.ones(29))


def test_batches_carry_the_weights_of_their_own_sequences():
    sequences = MemorySequences([np.full(2, index) for index in range(11)], np.arange(11) % 2)
    batches = TrainingBatches(
        sequences=sequences, collate=Collate(0, False), batch=4, accumulate=2, weights=np.arange(11.0)
    )
    seen = [part for step in batches.steps(0) for part, _ in step.parts]
    assert sorted(int(value) for part in seen for value in part.inputs[:, 0]) == list(range(11))
    assert all(part.weights.tolist() == part.inputs[:, 0].tolist() for part in seen)


def test_where_classes_count_alike_the_balanced_accuracy_judges_with_the_accuracy_beside_it():
    answers = torch.tensor([[1.0, 0], [1, 0], [1, 0], [1, 0]])
    measured = compute_metrics(answers, torch.tensor([0, 0, 0, 1]), "accuracy", balanced=True)
    assert (measured["accuracy"], measured["balanced_accuracy"]) == (0.75, 0.5)
    options = dataclasses.replace(tiny.OPTIONS, balance=True, evaluate_every=1, until="balanced_accuracy=1")
    evaluations = []

    class Watching(Callback):
        def on_evaluation(self, loop, metrics, improved):
            evaluations.append(metrics["balanced_accuracy"])

    outcome = fit(tiny.model(), tiny.task(), options, callbacks=[Watching()])
    assert outcome.metric == "balanced_accuracy"
    assert outcome.validation == max(evaluations)
    assert list(outcome.test) == ["loss", "balanced_accuracy", "accuracy"]
    with pytest.raises(ValueError, match="judged by balanced_accuracy, not by error"):
        fit(tiny.model(), tiny.task(), dataclasses.replace(options, until="error=0.1"))
    assert "balanced_accuracy" not in fit(tiny.model(), tiny.task(), tiny.OPTIONS).test


def test_classes_alike_are_refused_for_values_before_anything_is_trained():
    with pytest.raises(
        ValueError, match=r"^--balance \(balance=True\) is for classes, but .* has values; leave it out"
    ):
        resolve_training(dataclasses.replace(tiny.task(), target="value", classes=()), given={"balance": True})


def test_label_smoothing_is_of_training_alone():
    task = tiny.task()
    assert not torch.equal(_final_weights(task), _final_weights(task, label_smoothing=0.2))
    answers, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 1, 0])
    assert compute_metrics(answers, targets, "accuracy")["loss"] == pytest.approx(float(compute_loss(answers, targets)))


def test_a_column_of_a_table_holds_the_weights(tmp_path):
    rows = [f"text number {n},{n % 2},{n / 4}" for n in range(30)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["text,label,importance", *rows]))
    task = data.load(path, text="text", label="label", weight="importance")
    for split in task.splits.values():
        for index in range(len(split)):
            number = int("".join(task.vocabulary.symbols[t] for t in split[index].inputs[1:]).split()[-1])
            assert split.weights[index] == number / 4
    plain = data.load(path, text="text", label="label")
    assert plain.train.weights is None
    assert "weight" not in plain.settings
    assert plain.fingerprint != task.fingerprint
    path.write_text("\n".join(["text,label,importance", *rows[:5], "some text,1,-2"]))
    with pytest.raises(DataError, match=r"line 7: 'importance' holds '-2'; a weight is a number that is not negative"):
        data.load(path, text="text", label="label", weight="importance")
    (tmp_path / "a.fa").write_text(">a label=1\nACGT\n")
    with pytest.raises(DataError, match="--weight importance names a column of a table"):
        data.load(tmp_path / "a.fa", weight="importance")
