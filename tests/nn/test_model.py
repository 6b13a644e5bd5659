from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

import paramixer as pm
from ops import cases
from paramixer.nn.init import initialize
from paramixer.nn.paper import PaperParamixer

TOKENS = pm.ParamixerConfig(layer="paper", length=12, outputs=3, vocabulary=7, channels=4, hidden=5, pad=0)
REAL = pm.ParamixerConfig(layer="paper", length=12, outputs=1, features=2, channels=4, hidden=5, target="value")


def build(config: pm.ParamixerConfig, **changes) -> pm.Paramixer:
    """A model of the config with these changes, always with the same weights."""
    return pm.Paramixer(dataclasses.replace(config, **changes), generator=torch.Generator().manual_seed(0))


def tokens(batch: int, length: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(1, 7, (batch, length), generator=generator)


def expected_parameters(c: pm.ParamixerConfig) -> int:
    """The closed formula, from the shapes in the paper."""
    log = (c.length - 1).bit_length()
    m = c.factors or log
    k = c.links or (log + 1 if c.protocol == "chord" else 9)
    e, h = c.channels, c.hidden
    embedding = c.vocabulary * e if c.vocabulary else (c.features + 1) * e
    positions = c.length * e if c.positions else 0
    block = m * (e * h + h + h * k + k) + (e * h + h) + (h * e + e)
    read = c.length * e if c.pooling == "flat" else e
    return embedding + positions + c.blocks * block + (read + 1) * c.outputs


@pytest.mark.parametrize(
    "name",
    ["adding", "order", "listops", "image", "text", "pathfinder", "documents-16k", "documents-32k", "hfdna", "mtcdna"],
)
@pytest.mark.parametrize("protocol", ["chord", "cdil"])
def test_presets_have_the_closed_formulas_parameters(name, protocol):
    config = pm.preset(name, protocol)
    with torch.device("meta"):
        model = pm.Paramixer(config, init=None)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected_parameters(config)


@pytest.mark.parametrize("name", ["adding", "order", "listops", "image", "text", "pathfinder", "hfdna", "mtcdna"])
def test_presets_run_and_learn_at_a_small_length(name, generator):
    config = pm.preset(name, length=32)
    model = pm.Paramixer(config, generator=generator)
    if config.vocabulary:
        inputs = torch.randint(config.vocabulary, (2, 32), generator=generator)
    else:
        inputs = torch.randn(2, 32, config.features, generator=generator)
    answer = model(inputs)
    assert answer.shape == ((2,) if config.target == "value" else (2, config.outputs))
    answer.square().sum().backward()
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert missing == []


def test_forward_is_the_papers_equation(generator):
    """Embedding + positions, g, each factor with its residual, one linear layer: written out by hand."""
    model = build(TOKENS, blocks=2)
    ids = tokens(2, 12, generator)
    x0 = model.embedding.weight[ids] + model.positions.weight
    values = x0
    for block in model.blocks:
        values = block.mixing_matrix(x0) @ block.g(values)
    expected = values.flatten(1) @ model.head.linear.weight.T + model.head.linear.bias
    torch.testing.assert_close(model(ids), expected)


def test_links_read_the_first_input_or_the_blocks_own(generator):
    ids = tokens(2, 12, generator)
    first, own = build(TOKENS, blocks=2), build(TOKENS, blocks=2, link_input="block")
    assert not torch.equal(first(ids), own(ids))
    x0 = own.embedding.weight[ids] + own.positions.weight
    values = own.blocks[1](*[own.blocks[0](x0, x0)] * 2)
    torch.testing.assert_close(own(ids), own.head(values))


@pytest.mark.parametrize("pooling", ["flat", "cls", "mean", "token"])
@pytest.mark.parametrize("target", ["class", "value"])
def test_every_pooling_and_target_has_its_shape(pooling, target, generator):
    answer = build(TOKENS, pooling=pooling, target=target, outputs=1)(tokens(2, 9, generator))
    expected = (2, 9) if pooling == "token" else (2,)
    assert answer.shape == (expected if target == "value" else (*expected, 1))


def test_dropouts_act_in_training_only(generator):
    model = build(TOKENS, embedding_dropout=0.5, block_dropout=0.5)
    ids = tokens(2, 12, generator)
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))
    assert torch.equal(model(ids), build(TOKENS).eval()(ids))


def test_no_position_table_unless_it_is_used():
    assert build(TOKENS, positions=False).positions is None
    assert "positions.weight" not in build(TOKENS, positions=False).state_dict()


def test_symbol_padding_fills_to_the_full_length(generator):
    model = build(TOKENS)
    short = tokens(2, 8, generator)
    full = torch.nn.functional.pad(short, (0, 4))
    assert torch.equal(model(short), model(full))
    garbage = full.clone()
    garbage[:, 8:] = 6
    assert not torch.equal(model(garbage), model(full))
    assert torch.equal(model(garbage, [8, 8]), model(full))


@pytest.mark.parametrize("padding", ["symbol", "length"])
@pytest.mark.parametrize("bound", [None, 0.1])
def test_the_pad_row_is_zero_and_stays_zero(padding, bound):
    model = build(TOKENS, padding=padding, pad=3)
    initialize(model, embedding_bound=bound)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.tensor([[1, 2, 4, 3, 3, 3]])).square().sum().backward()
        optimizer.step()
    assert (model.embedding.weight[3] == 0).all()
    assert (model.embedding.weight[1] != 0).all()


def outputs_and_gradients(model: pm.Paramixer, inputs: torch.Tensor, lengths: list[int]) -> dict[str, torch.Tensor]:
    model.zero_grad()
    answer = model(inputs, lengths)
    if model.config.pooling == "token":
        answer = answer[:, : max(lengths)]
    answer.square().sum().backward()
    return {"answer": answer.detach()} | {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("link_input", ["first", "block"])
@pytest.mark.parametrize("pooling", ["flat", "cls", "mean", "token"])
@pytest.mark.parametrize("kind", ["tokens", "real"])
def test_length_padding_changes_neither_outputs_nor_gradients(kind, pooling, link_input, generator):
    config = TOKENS if kind == "tokens" else REAL
    model = build(config, padding="length", pooling=pooling, blocks=2, link_input=link_input, length=20).double()
    lengths = [6, 1, 4]
    if kind == "tokens":
        short = tokens(3, 6, generator)
    else:
        short = torch.randn(3, 6, 2, generator=generator, dtype=torch.float64)
    expected = outputs_and_gradients(model, short, lengths)
    for width in (6, 7, 13, 20):
        if kind == "tokens":
            padded = torch.randint(0, 7, (3, width), generator=generator)
        else:
            padded = torch.full((3, width, 2), torch.nan, dtype=torch.float64)
        for row, length in enumerate(lengths):
            padded[row, :length] = short[row, :length]
        padded_results = outputs_and_gradients(model, padded, lengths)
        for name, tensor in expected.items():
            cases.assert_close(padded_results[name], tensor, 1e-12)


def test_a_sequence_is_the_same_alone_and_in_a_padded_batch(generator):
    model = build(TOKENS, padding="length", pooling="mean").eval()
    ids = tokens(3, 12, generator)
    together = model(ids, [12, 5, 1])
    for row, length in enumerate([12, 5, 1]):
        torch.testing.assert_close(model(ids[row : row + 1, :length]), together[row : row + 1])


def test_length_padding_counts_trailing_pads_only(generator):
    model = build(TOKENS, padding="length").eval()
    ids = torch.tensor([[1, 0, 2, 0, 0], [0, 0, 0, 0, 0], [1, 2, 3, 4, 5]])
    assert torch.equal(model(ids), model(ids, [3, 0, 5]))


def test_position_zero_of_an_empty_sequence_is_zero():
    model = build(TOKENS, padding="length", pooling="cls").eval()
    torch.testing.assert_close(model(torch.ones(1, 4).long(), [0])[0], model.head.linear.bias)


@pytest.mark.parametrize(
    ("config", "inputs", "lengths", "message"),
    [
        (TOKENS, torch.ones(2, 13).long(), None, "length 13 exceeds the model's 12; make the model with length=13"),
        (TOKENS, torch.ones(2, 12), None, "token ids are torch.float32"),
        (TOKENS, torch.ones(12).long(), None, r"token ids have shape \[12\]"),
        (TOKENS, torch.full((1, 12), 7), None, "token id 7 is outside the vocabulary, 0 to 6"),
        (TOKENS, torch.full((1, 12), -1), None, "token id -1 is outside the vocabulary"),
        (TOKENS, torch.ones(2, 12).long(), [13, 1], r"lengths\[0\] is 13"),
        (TOKENS, torch.ones(2, 12).long(), [1], r"lengths have shape \[1\]"),
        (TOKENS, torch.ones(2, 0).long(), None, "the sequences are empty"),
        (REAL, torch.ones(2, 12, 3), None, r"inputs have shape \[2, 12, 3\], expected \[batch, length, 2\]"),
        (
            REAL,
            torch.ones(2, 12, 2).double(),
            None,
            "inputs are torch.float64, the model's parameters are torch.float32",
        ),
        (REAL, [[1.0]], None, "inputs are a list"),
        (REAL, torch.ones(2, 12, 2).long(), None, "inputs are torch.int64"),
        (
            REAL,
            torch.ones(2, 11, 2),
            None,
            "length 11 is shorter than the model's 12; give full sequences, use padding='length'$",
        ),
        (REAL, torch.ones(2, 12, 2), [3, 4], "lengths need padding='length'$"),
    ],
)
def test_wrong_inputs_are_named(config, inputs, lengths, message):
    with pytest.raises((TypeError, ValueError), match=message):
        build(config)(inputs, lengths)


def test_it_is_a_plain_module_in_anyones_loop(generator):
    """Compiled, copied to bfloat16 autocast, wrapped in a Sequential and optimized, by plain torch."""
    model = build(TOKENS)
    ids = tokens(8, 12, generator)
    labels = torch.randint(3, (8,), generator=generator)
    wrapped = nn.Sequential(model)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(ids), wrapped(ids))
    optimizer = torch.optim.Adam(wrapped.parameters(), 0.01)
    losses = []
    for _ in range(60):
        loss = nn.functional.cross_entropy(wrapped(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


SHARED = dataclasses.replace(TOKENS, positions=False, blocks=2, padding="length", embedding_dropout=0.2)


@pytest.mark.parametrize("training", [False, True])
def test_links_computed_once_per_distinct_row_are_the_same(training, generator, monkeypatch):
    inputs = tokens(16, 12, generator)
    lengths = [12, 5, 1, 12] * 4
    changes = {"embedding_dropout": 0.0} if training else {}
    for others in (
        {},
        {"pooling": "cls"},
        {"protocol": "cdil", "residual": "block", "pad": None},
        {"padding": "symbol"},
        {"positions": True, "checkpoint_every": 2},
        {"positions": True, "padding": "symbol"},
    ):
        model = build(SHARED, **changes, **others).double().train(training)
        answers, grads = [], []
        for shared in (True, False):
            table, row_ids = model.distinct_rows(inputs)
            cases.assert_close(table[row_ids], model.embed(inputs).values, 1e-10)
            assert 2 * len(table) <= inputs.numel()
            if not shared:
                monkeypatch.setattr(PaperParamixer, "distinct_rows", lambda *_: None)
            answers.append(model(inputs, lengths))
            grads.append(torch.autograd.grad(answers[-1].square().sum(), list(model.parameters())))
            monkeypatch.undo()
        cases.assert_close(*answers, 1e-10)
        for shared, separate in zip(*grads, strict=True):
            cases.assert_close(shared, separate, 1e-10)


@pytest.mark.parametrize(
    "changes",
    [
        {"positions": True},
        {"positions": True, "vocabulary": 10_000},
        {"link_input": "block"},
        {"vocabulary": 100},
        {"embedding_dropout": 0.2},
    ],
    ids=str,
)
def test_rows_are_not_shared_if_links_would_be_wrong_or_rows_too_many(changes, generator):
    model = build(SHARED, **{"embedding_dropout": 0.0} | changes).train()
    assert model.distinct_rows(tokens(3, 12, generator)) is None


def test_rows_are_not_shared_with_hooks_or_with_little_memory(generator):
    inputs = tokens(12, 12, generator)
    model = build(SHARED, positions=True)
    assert model.eval().distinct_rows(inputs) is not None
    # Dropout at prediction, as for estimates of uncertainty.
    model.dropout.train()
    assert model.distinct_rows(inputs) is None
    model.dropout.eval()
    with model.embedding.register_forward_hook(lambda *_: None):
        assert model.distinct_rows(inputs) is None
    assert model.max_distinct_rows(1000) == 500
    wide = build(SHARED, length=1024, channels=4, checkpoint_every=100)
    factors, links = wide.blocks[0].offsets.shape
    assert wide.max_distinct_rows(1000) == 1000 * 4 // (factors * links) < 500


@pytest.mark.parametrize("pooling", ["flat", "cls", "mean", "token"])
@pytest.mark.parametrize("padding", ["symbol", "length"])
def test_features_are_what_the_linear_layer_reads(pooling, padding, generator):
    model = build(TOKENS, pooling=pooling, padding=padding, blocks=2).eval()
    ids, lengths = tokens(3, 9, generator), [9, 1, 4]
    features = model.features(ids, lengths)
    assert features.shape == {"flat": (3, 48), "token": (3, 9, 4)}.get(pooling, (3, 4))
    torch.testing.assert_close(model.head.linear(features), model(ids, lengths))


@pytest.mark.parametrize("link_input", ["first", "block"])
def test_the_steps_of_forward_can_be_taken_one_by_one(link_input, generator):
    model = build(TOKENS, blocks=2, link_input=link_input, padding="length").eval()
    ids = tokens(2, 9, generator)
    embedded = model.embed(ids, [9, 4])
    assert embedded.values.shape == (2, 9, 4)
    assert embedded.lengths.tolist() == [9, 4]
    assert torch.equal(model.answer(model.mix(embedded), embedded), model(ids, [9, 4]))
    values = embedded.values
    for block, inputs in zip(model.paramixer_blocks(), model.link_inputs(embedded), strict=True):
        values = block(values, inputs, embedded.lengths)
    torch.testing.assert_close(values, model.mix(embedded))
