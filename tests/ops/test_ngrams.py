"""N-gram tables against a dictionary of n-grams, for every backend, length, thread count and kind of row."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
import torch
from torch import Tensor
from torch.library import opcheck

import paramixer as pm
from ops import cases
from ops.instruction_sets import needs_engine, run_with_threads
from paramixer.ops import cpu, reference
from paramixer.ops.ngram_layout import NgramLayout
from paramixer.ops.ngrams import count_ngrams, ngram_rows, ngram_rows_op, occurrences, occurrences_op
from paramixer.ops.table_rows import bag, sum_by_row

# Orders 1 and 2 are counted, 3 and 5 hashed.
LAYOUT = NgramLayout((1, 2, 3, 5), vocabulary=6, rows=40)
each_backend = pytest.mark.parametrize("backend", cases.AVAILABLE)


def ngram_bag(tokens: Tensor, table: Tensor, *arguments, **options) -> Tensor:
    """The sums of the vectors of each position's n-grams."""
    return bag(ngram_rows(tokens, *arguments, **options), table)


def list_ngrams(tokens: Tensor, lengths: list[int], orders: tuple[int, ...]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Sequence, last position and tokens of every n-gram."""
    return [
        (b, i, tuple(tokens[b, i - n + 1 : i + 1].tolist()))
        for b, length in enumerate(lengths)
        for n in orders
        for i in range(n - 1, length)
    ]


def row_of(ngram: tuple[int, ...]) -> int:
    """The row of an n-gram, from the definition."""
    block = next(block for block in LAYOUT.blocks if block.order == len(ngram))
    golden = 0x9E3779B97F4A7C15
    base = 6 if block.counted else golden
    code = sum(token * base**place for place, token in enumerate(reversed(ngram)))
    if not block.counted:
        code = (code + golden) % 2**64
        code = (code ^ (code >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        code = (code ^ (code >> 27)) * 0x94D049BB133111EB % 2**64
        code = ((code ^ (code >> 31)) >> 32) * block.rows >> 32
    return block.start + code


def make_batch(generator: torch.Generator, batch: int, length: int, lengths: list[int] | None) -> Tensor:
    """Random tokens; past the lengths ids that no table has."""
    tokens = torch.randint(LAYOUT.vocabulary, (batch, length), generator=generator)
    if lengths is not None:
        past = torch.arange(length) >= torch.tensor(lengths)[:, None]
        tokens[past] = torch.tensor([-5, 10**12]).repeat(tokens.numel())[: int(past.sum())]
    return tokens


@each_backend
@pytest.mark.parametrize("kind", ["none", "full", "zero", "one", "mixed"])
@pytest.mark.parametrize("length", [0, 1, 4, 37])
def test_a_position_gets_the_sum_of_the_ngrams_that_end_there(backend, kind, length, generator):
    lengths = cases.make_lengths(6, length)["zero" if kind == "one" and length == 0 else kind]
    tokens = make_batch(generator, 6, length, lengths)
    table = torch.randn(LAYOUT.total, 7, generator=generator, requires_grad=True)
    grad = torch.randn(6, length, 7, generator=generator)
    ngrams = list_ngrams(tokens, lengths or [length] * 6, LAYOUT.orders)
    with pm.backend(backend):
        sums = ngram_bag(tokens, table, LAYOUT, lengths)
        sums.backward(cases.put_nan_past(grad, lengths))
    rows = {ngram: row_of(ngram) for _, _, ngram in ngrams}
    expected, gradient = torch.zeros(6, length, 7), defaultdict(lambda: torch.zeros(7))
    for b, i, ngram in ngrams:
        expected[b, i] += table.detach()[rows[ngram]]
        gradient[rows[ngram]] += grad[b, i]
    torch.testing.assert_close(sums.detach(), expected)
    assert table.grad is not None
    assert table.grad.is_sparse
    assert table.grad._indices()[0].tolist() == sorted(gradient)
    for row, values in zip(table.grad._indices()[0].tolist(), table.grad._values(), strict=True):
        torch.testing.assert_close(values, gradient[row], atol=1e-5, rtol=1e-5)


@each_backend
def test_counted_rows_are_numbers_and_hashed_rows_spread_over_their_block(backend):
    ngrams = torch.cartesian_prod(*[torch.arange(6)] * 3)
    with pm.backend(backend):
        last = ngram_rows(ngrams, LAYOUT)[:, -1]
    assert torch.equal(last[:, 1], 6 + 6 * ngrams[:, 1].int() + ngrams[:, 2].int())
    hashed = torch.bincount(last[:, 2] - 42, minlength=40)
    assert len(hashed) == 40
    # 216 n-grams in 40 rows: for a fair hash more than 20 in one has a chance of one in a million.
    assert int(hashed.max()) <= 20
    assert (last[:, 3] == -1).all()


def test_the_hash_depends_on_every_token_and_its_place():
    """Also for long n-grams of a vocabulary that is a power of two, whose numbers exceed 64 bits."""
    layout = NgramLayout((20,), vocabulary=256, rows=2**30)
    ngrams = torch.full((41, 20), 7)
    ngrams[torch.arange(20), torch.arange(20)] = 8
    ngrams[20 + torch.arange(20), torch.arange(20)] = 255
    assert len(ngram_rows(ngrams, layout)[:, -1].unique()) == 41


@needs_engine
@pytest.mark.parametrize("width", [1, 15, 16, 33])
def test_backends_agree_on_rows_and_any_width(width, generator):
    layout = NgramLayout((2, 3, 4, 5, 11), vocabulary=256, rows=2**17)
    tokens = torch.randint(97, 105, (3, 300), generator=generator)
    lengths = torch.tensor([300, 0, 123])
    admitted = torch.randint(2, (layout.total,), generator=generator, dtype=torch.uint8)
    rows = cpu.ngram_rows(tokens, lengths, layout, admitted)
    assert torch.equal(rows, reference.ngram_rows(tokens, lengths, layout, admitted))
    table = torch.randn(layout.total, width, generator=generator)
    torch.testing.assert_close(cpu.bag(rows, table), reference.bag(rows, table))
    grad, flat = torch.randn(900, width, generator=generator), rows.flatten(0, 1)
    distinct, sums = cpu.bag_backward(grad, flat)
    expected = reference.bag_backward(grad.double(), flat)
    assert torch.equal(distinct, expected[0])
    cases.assert_close(sums.double(), expected[1], 1e-6)


@each_backend
def test_rows_that_are_not_admitted_add_nothing_and_get_no_gradient(backend, generator):
    tokens = make_batch(generator, 2, 30, None)
    table = torch.randn(LAYOUT.total, 3, generator=generator)
    admitted = torch.randint(2, (LAYOUT.total,), generator=generator, dtype=torch.uint8)
    left = table.masked_fill((admitted == 0)[:, None], 0).requires_grad_()
    table[admitted == 0] = torch.nan
    table.requires_grad_()
    with pm.backend(backend):
        sums = ngram_bag(tokens, table, LAYOUT, admitted=admitted)
        sums.sum().backward()
        torch.testing.assert_close(sums, ngram_bag(tokens, left, LAYOUT))
    assert table.grad is not None
    assert admitted[table.grad._indices()[0]].all()


@each_backend
@pytest.mark.parametrize("length", [0, 1, 50])
def test_occurrences_stand_at_the_first_of_each_in_a_sequence(backend, length, generator):
    tokens = make_batch(generator, 3, length, None)
    with pm.backend(backend):
        rows = ngram_rows(tokens, LAYOUT, [length, length // 2, 0])
        counts = occurrences(rows, LAYOUT)
    assert counts.dtype == torch.int32
    for sequence, found in zip(rows.tolist(), counts.tolist(), strict=True):
        left = Counter(row for of_position in sequence for row in of_position)
        for of_position, numbers in zip(sequence, found, strict=True):
            # Only the first of a row finds it in the counter.
            assert numbers == [0 if row < 0 else left.pop(row, 0) for row in of_position]


@each_backend
@pytest.mark.parametrize("orders", [1, 7])
@pytest.mark.parametrize("width", [1, 16, 21])
def test_weights_multiply_rows_and_gradients(backend, width, orders, generator):
    rows = torch.randint(-1, 30, (5, 9, orders), generator=generator, dtype=torch.int32)
    weights = torch.randn(5, 9, orders, generator=generator)
    # What is not looked up is not multiplied either.
    weights[rows < 0] = torch.nan
    table = torch.randn(30, width, generator=generator, requires_grad=True)
    upstream = torch.randn(5, 9, width, generator=generator)
    with pm.backend(backend):
        sums = bag(rows, table, weights)
        sums.backward(upstream)
    plain = table.detach().double().requires_grad_()
    one = (plain[rows.clamp(min=0)] * weights.nan_to_num()[..., None]).sum(2)
    one.backward(upstream.double())
    assert table.grad is not None
    cases.assert_close(sums.detach().double(), one.detach(), 1e-6)
    cases.assert_close(table.grad.to_dense().double(), plain.grad, 1e-6)
    with pytest.raises(ValueError, match="weights has shape"):
        bag(rows, table, weights[:, 1:])


@each_backend
def test_counts_are_sequences_not_occurrences(backend, generator):
    awkward = [9, 0, 1, 4, 9]
    batches = [(make_batch(generator, 5, 9, awkward), awkward), (make_batch(generator, 4, 30, None), None)]
    expected = torch.zeros(LAYOUT.total, dtype=torch.int32)
    for tokens, lengths in batches:
        for rows in ngram_rows(tokens, LAYOUT, lengths):
            expected[rows[rows >= 0].unique()] += 1
    with pm.backend(backend):
        assert torch.equal(count_ngrams(iter(batches), LAYOUT), expected)
        many = count_ngrams([(torch.zeros(300, 1, dtype=torch.int64), None)], LAYOUT)
    assert int(many[0]) == 300
    assert not many[1:].any()


@needs_engine
def test_bits_do_not_depend_on_the_number_of_threads(generator):
    layout = NgramLayout((1, 2, 3), vocabulary=9, rows=300)
    tokens = (torch.rand(4, 3000, generator=generator) ** 4 * 9).long()
    table, grad = torch.randn(layout.total, 20, generator=generator), torch.randn(12000, 20, generator=generator)

    def compute() -> dict[str, Tensor]:
        rows = cpu.ngram_rows(tokens, None, layout, None)
        distinct, sums = cpu.bag_backward(grad, rows.flatten(0, 1))
        counts = count_ngrams([(tokens, None)], layout)
        return {"rows": rows, "bag": cpu.bag(rows, table), "distinct": distinct, "sums": sums, "counts": counts}

    first, *others = run_with_threads(compute, (1, 2, 8))
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)


def test_a_million_equal_ngrams_add_up():
    """A sum of floats in one go would be off by hundreds."""
    rows = torch.zeros(2**20, 1, dtype=torch.int32)
    distinct, sums = sum_by_row(rows, torch.full((2**20, 2), 0.1))
    assert distinct.tolist() == [0]
    if pm.backends()["cpu"]:
        torch.testing.assert_close(sums, torch.full((1, 2), 2**20 * 0.1), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_other_dtypes_are_computed_by_the_reference(dtype, generator):
    tokens = make_batch(generator, 2, 30, None)
    table = torch.randn(LAYOUT.total, 3, generator=generator, dtype=dtype, requires_grad=True)
    sums = ngram_bag(tokens, table, LAYOUT)
    sums.sum().backward()
    assert sums.dtype == dtype
    assert table.grad is not None
    assert table.grad.dtype == dtype
    expected = ngram_bag(tokens, table.detach().float(), LAYOUT)
    torch.testing.assert_close(sums.float(), expected, atol=1e-6 if dtype == torch.float64 else 0.05, rtol=0.01)


def test_compiled_and_exported_calls_have_a_dense_gradient(generator):
    class Bag(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn(LAYOUT.total, 3, generator=generator))

        def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
            return ngram_bag(tokens, self.table, LAYOUT, lengths)

    model, lengths = Bag(), torch.tensor([30, 4])
    tokens = make_batch(generator, 2, 30, None)
    expected = model(tokens, lengths)
    expected.square().sum().backward()
    sparse, model.table.grad = model.table.grad, None
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(tokens, lengths)
    compiled.square().sum().backward()
    torch.testing.assert_close(compiled, expected)
    torch.testing.assert_close(model.table.grad, sparse.to_dense())
    exported = torch.export.export(model, (tokens, lengths)).module()(tokens, lengths)
    torch.testing.assert_close(exported, expected)


def test_opcheck():
    opcheck(ngram_rows_op, (torch.tensor([[0, 5, 4]]), torch.tensor([2]), None, None, [1, 2], 6, 40, 0))
    opcheck(occurrences_op, (torch.tensor([[[0, 7], [-1, 8], [0, 8]]], dtype=torch.int32), 40))


def test_a_second_derivative_raises():
    table = torch.ones(LAYOUT.total, 2, requires_grad=True)
    sums = ngram_bag(torch.tensor([[1, 2]]), table, LAYOUT)
    (grad,) = torch.autograd.grad(sums.square().sum(), table, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.to_dense().sum().backward()


@each_backend
@pytest.mark.parametrize("token", [-1, 6, 2**40])
def test_tokens_outside_the_vocabulary_are_refused(backend, token):
    with pm.backend(backend), pytest.raises(ValueError, match=rf"token {token} is outside the vocabulary, 0 to 5"):
        ngram_rows(torch.tensor([[0, 1, token]]), LAYOUT)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": torch.zeros(3, dtype=torch.int64)}, r"tokens have shape \[3\], expected \[batch, length\]"),
        ({"tokens": torch.zeros(2, 3)}, "tokens are torch.float32, expected whole numbers"),
        ({"lengths": [3, 4]}, r"lengths\[1\] is 4, expected 0 to 3"),
        ({"lengths": [3]}, r"lengths have shape \[1\]"),
        (
            {"admitted": torch.ones(5, dtype=torch.uint8)},
            r"admitted is torch.uint8 \[5\], expected torch.uint8 \[122\]",
        ),
        ({"admitted": torch.ones(122)}, "admitted is torch.float32"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    right = {"tokens": torch.zeros(2, 3, dtype=torch.int64), "layout": LAYOUT}
    ngram_rows(**right)
    with pytest.raises((TypeError, ValueError), match=message):
        ngram_rows(**right | change)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"orders": ()}, "give at least one"),
        ({"orders": (2, 2)}, "each only once"),
        ({"orders": (0,)}, "1 to 64 tokens, not 0"),
        ({"rows": 0}, "rows=0"),
        ({"vocabulary": 0}, "vocabulary=0"),
        ({"rows": 2**31, "vocabulary": 1000}, "the limit is 2,147,483,647; choose fewer"),
    ],
)
def test_a_layout_is_checked(fields, message):
    with pytest.raises(ValueError, match=message):
        NgramLayout(**{"orders": (2, 5), "vocabulary": 6, "rows": 40} | fields)


@needs_engine
def test_kernels_check_their_arguments_before_they_read_memory():
    engine = cpu._engine
    rows = torch.zeros(4, 2, dtype=torch.int32)
    with pytest.raises(ValueError, match="row 9 is outside the table, which has 5 rows"):
        engine.bag(rows + 9, None, torch.zeros(5, 3), torch.zeros(4, 3))
    with pytest.raises(ValueError, match="weights has not the shape of rows"):
        engine.bag(rows, torch.zeros(4, 3), torch.zeros(5, 3), torch.zeros(4, 3))
    with pytest.raises(ValueError, match="weights has not the shape of rows"):
        engine.bag_backward(torch.zeros(4, 3), rows, torch.zeros(3, 2))
    with pytest.raises(ValueError, match="row 9 is outside the table, which has 5 rows"):
        engine.occurrences(rows[None] + 9, torch.zeros(5, dtype=torch.int32), rows[None])
    with pytest.raises(ValueError, match="grad and rows"):
        engine.bag_backward(torch.zeros(3, 3), rows, None)
    with pytest.raises(TypeError):
        engine.bag_backward(torch.zeros(4, 6)[:, ::2], rows, None)
    tokens, out = torch.zeros(1, 3, dtype=torch.int64), torch.zeros(1, 3, 1, dtype=torch.int32)
    with pytest.raises(ValueError, match="not in a table of 5 rows"):
        engine.ngram_rows(tokens, None, None, torch.ones(5, dtype=torch.uint8), [(2, 3, 4, False, False)], 6, out)
    with pytest.raises(ValueError, match="30 rows are too few to count n-grams of order 2"):
        engine.ngram_rows(tokens, None, None, None, [(2, 0, 30, True, False)], 6, out)
    table, step = torch.zeros(5, 3), (1.0, 0.9, 0.99, 0.1, 0.1, 1e-8)
    for wrong in ([0, 5], [1, 1], [-1, 0], [2, 1]):
        with pytest.raises(ValueError, match="rows are not ascending numbers below 5"):
            engine.update_rows(table, table.clone(), table.clone(), torch.tensor(wrong), torch.zeros(2, 3), step)
