"""Row-sparse AdamW against torch's dense one: touched rows agree, others keep their bits."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import paramixer as pm
from ops import cases
from ops.instruction_sets import needs_engine, run_with_threads
from paramixer.nn.ngrams import NgramTables
from paramixer.ops.adamw_step import AdamWStep
from paramixer.ops.table_rows import update_rows_
from paramixer.training import factory
from paramixer.training.callbacks.checkpoint import find_latest
from paramixer.training.fit import fit
from paramixer.training.optimizer import build_optimizer, set_lr
from paramixer.training.options import TrainingOptions
from paramixer.training.row_sparse import RowSparseAdamW, clip_gradients, row_sparse_tables, split_rows
from table_model import TableModel, make_model
from training import tiny
from training.test_fit import same_weights, timeless


class Bags(nn.Module):
    """A table and a head."""

    def __init__(self, vocabulary: int = 8, rows: int = 100) -> None:
        super().__init__()
        self.tables = NgramTables(vocabulary, 4, orders=(1, 2, 3), rows=rows)
        self.head = nn.Linear(4, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return one number for each sequence."""
        return self.head(self.tables(tokens)[0]).mean((1, 2))


@pytest.fixture
def model(generator):
    """With weights that are not zero, so that weight decay counts."""
    made = Bags()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return made


def make_optimizer(model: nn.Module, kind: str = "adamw") -> RowSparseAdamW:
    """With a factor for the table."""
    decay = 0.1 if kind == "adamw" else None
    options = TrainingOptions(learning_rate=0.01, optimizer=kind, weight_decay=decay)
    groups = [{"params": [model.tables.weight], "lr_factor": 0.5}, {"params": list(model.head.parameters())}]
    optimizer = build_optimizer(model, options, groups)
    assert isinstance(optimizer, RowSparseAdamW)
    assert row_sparse_tables(optimizer) == [model.tables.weight]
    return optimizer


def dense_twin(model: nn.Module, kind: str = "adamw") -> tuple[nn.Module, torch.optim.Optimizer]:
    """A copy with torch's own optimizer."""
    twin = copy.deepcopy(model)
    groups = [{"params": [twin.tables.weight], "lr": 0.005}, {"params": twin.head.parameters(), "lr": 0.01}]
    if kind == "adam":
        return twin, torch.optim.Adam(groups)
    return twin, torch.optim.AdamW(groups, weight_decay=0.1)


@pytest.mark.parametrize("backend", cases.AVAILABLE)
@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_rows_touched_every_step_follow_torchs_adamw_and_others_stay(model, kind, backend, generator):
    start = model.tables.weight.detach().clone()
    twin, torchs = dense_twin(model, kind)
    optimizer = make_optimizer(model, kind)
    tokens = torch.randint(6, (3, 30), generator=generator)
    with pm.backend(backend):
        for step in range(20):
            set_lr(optimizer, 0.01)
            targets = torch.full((3,), float(step))
            for each in (model, twin):
                (each(tokens) - targets).square().sum().backward()
            touched = model.tables.weight.grad._indices()[0]
            twin.tables.weight.grad = twin.tables.weight.grad.to_dense()
            for each in (optimizer, torchs):
                each.step()
                each.zero_grad()
    after, expected = model.tables.weight.detach(), twin.tables.weight.detach()
    torch.testing.assert_close(after[touched], expected[touched], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(model.head.weight, twin.head.weight, atol=1e-6, rtol=1e-6)
    others = torch.ones(len(start), dtype=torch.bool)
    others[touched] = False
    assert others.any()
    assert torch.equal(after[others], start[others])
    assert not optimizer.state[model.tables.weight]["exp_avg"][others].any()


def test_accumulated_gradients_are_one_step(model, generator):
    whole = copy.deepcopy(model)
    tokens = torch.randint(8, (6, 30), generator=generator)
    whole(tokens).sum().backward()
    for part in tokens.split(2):
        model(part).sum().backward()
    rows, values = split_rows(model.tables.weight.grad)
    assert torch.equal(rows, split_rows(whole.tables.weight.grad)[0])
    torch.testing.assert_close(values, split_rows(whole.tables.weight.grad)[1])
    for each in (model, whole):
        make_optimizer(each).step()
    torch.testing.assert_close(model.tables.weight, whole.tables.weight)


def test_a_dense_gradient_moves_the_same_rows(model, generator):
    """As a compiled model gives it."""
    twin = copy.deepcopy(model)
    tokens = torch.randint(8, (2, 30), generator=generator)
    for each in (model, twin):
        each(tokens).sum().backward()
    twin.tables.weight.grad = twin.tables.weight.grad.to_dense()
    for each in (model, twin):
        make_optimizer(each).step()
    assert torch.equal(model.tables.weight, twin.tables.weight)


def test_clipping_is_that_of_the_dense_gradient(model, generator):
    twin = copy.deepcopy(model)
    tokens = torch.randint(8, (2, 30), generator=generator)
    for part in (tokens, tokens.flip(0), tokens[:1]):
        for each in (model, twin):
            each(part).sum().backward()
    twin.tables.weight.grad = twin.tables.weight.grad.to_dense()
    for limit in (100.0, 0.01):
        clip_gradients(model.parameters(), limit)
        nn.utils.clip_grad_norm_(twin.parameters(), limit)
        torch.testing.assert_close(model.tables.weight.grad.to_dense(), twin.tables.weight.grad)
        torch.testing.assert_close(model.head.weight.grad, twin.head.weight.grad)
    clip_gradients([], 1.0)


def test_a_step_without_a_gradient_of_the_table_leaves_it_alone(model):
    optimizer = make_optimizer(model)
    start = model.tables.weight.detach().clone()
    model.head.weight.sum().backward()
    optimizer.step()
    assert torch.equal(model.tables.weight, start)
    assert model.tables.weight not in optimizer.state


def test_the_state_comes_back_bit_for_bit(model, generator):
    batches = torch.randint(8, (8, 2, 30), generator=generator)
    twin = copy.deepcopy(model)

    def learn(each: nn.Module, optimizer: RowSparseAdamW, part: Tensor) -> None:
        for tokens in part:
            each(tokens).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    learn(model, make_optimizer(model), batches)
    first = make_optimizer(twin)
    learn(twin, first, batches[:4])
    second = make_optimizer(twin)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    learn(twin, second, batches[4:])
    assert torch.equal(model.tables.weight, twin.tables.weight)
    assert torch.equal(model.head.weight, twin.head.weight)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_other_dtypes_take_a_step(dtype, generator):
    table = torch.randn(9, 3, generator=generator, dtype=dtype)
    moments = torch.zeros(9, 3, dtype=dtype), torch.zeros(9, 3, dtype=dtype)
    before = table.clone()
    step = AdamWStep.at(1, 0.1, (0.9, 0.999), 1e-8, 0.0)
    update_rows_(table, *moments, torch.tensor([2, 7]), torch.ones(2, 3, dtype=dtype), step)
    expected = before.index_add(0, torch.tensor([2, 7]), torch.full((2, 3), -0.1, dtype=dtype))
    torch.testing.assert_close(table, expected, atol=0.02 if dtype == torch.bfloat16 else 1e-6, rtol=0)


@needs_engine
def test_bits_do_not_depend_on_the_number_of_threads(generator):
    start, grads = torch.randn(3, 999, 20, generator=generator).abs(), torch.randn(333, 20, generator=generator)

    def compute() -> dict[str, Tensor]:
        table, mean, square = start.clone()
        step = AdamWStep.at(3, 0.1, (0.9, 0.999), 1e-8, 0.1)
        update_rows_(table, mean, square, torch.arange(0, 999, 3), grads, step)
        return {"table": table, "mean": mean, "square": square}

    first, *others = run_with_threads(compute, (1, 2, 8))
    assert all(torch.equal(first[name], other[name]) for other in others for name in first)


def train(folder: Path, steps: int, resume: bool = False) -> TableModel:
    """Train a fresh model, or go on."""
    model = make_model()
    options = dataclasses.replace(
        tiny.OPTIONS, steps=steps, accumulate=2, clip=0.5, optimizer="adamw", weight_decay=0.1
    )
    fit(model, tiny.task(), options, folder=folder, seed=5, resume=resume)
    return model


@pytest.fixture
def _loads_tables(monkeypatch):
    monkeypatch.setattr(factory, "load_model", TableModel.from_pretrained)


@pytest.mark.usefixtures("_loads_tables")
def test_a_run_with_tables_resumes_bit_for_bit_and_stores_touched_rows_only(tmp_path):
    whole = train(tmp_path / "whole", 8)
    train(tmp_path / "parts", 4)
    resumed = train(tmp_path / "parts", 8, resume=True)
    assert same_weights(whole, resumed)
    assert whole.tables.weight.any()
    assert timeless(tmp_path / "whole") == timeless(tmp_path / "parts")
    checkpoint = find_latest(tmp_path / "parts" / "state")
    stored = load_file(checkpoint / "tensors.safetensors")
    rows = stored["model.tables.weight:rows"]
    assert 50 < len(rows) < whole.tables.layout.total / 2
    moments = {name for name in stored if name.endswith(("exp_avg:rows", "exp_avg_sq:rows"))}
    assert len(moments) == 2
    assert all(torch.equal(stored[name], rows) for name in moments)


@pytest.mark.usefixtures("_loads_tables")
def test_a_checkpoint_with_wrong_rows_is_refused(tmp_path):
    train(tmp_path / "run", 4)
    path = find_latest(tmp_path / "run" / "state") / "tensors.safetensors"
    stored = load_file(path)
    name = next(name for name in stored if name.endswith("exp_avg:rows"))
    for wrong, message in ((stored[name] + 9999, "its table has 1554"), (stored[name][1:].clone(), "do not fit")):
        save_file(stored | {name: wrong}, path)
        with pytest.raises(ValueError, match=message):
            train(tmp_path / "run", 8, resume=True)
