"""NgramTables: memory, counting, learning."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from paramixer.nn.ngrams import NgramTables, row_buffer_names, row_sparse_names
from paramixer.ops.lazy_zeros import lazy_zeros


def resident_bytes() -> int:
    """Memory that this process has touched."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_large_table_takes_no_memory_before_it_is_used():
    # What torch imports at the first call of an op is no memory of a table.
    NgramTables(5, 4, orders=(1,), rows=9)(torch.zeros(1, 9, dtype=torch.int64))[0].sum().backward()
    before = resident_bytes()
    tables = NgramTables(256, 16, orders=(4, 5), rows=2**21)
    tables.reset_parameters()
    tables(torch.zeros(1, 9, dtype=torch.int64))[0].sum().backward()
    # The rarities take 4 MB, the table would take 268 MB; a page that is read may be two megabytes.
    assert resident_bytes() - before < 60e6
    assert tables.weight.data_ptr() % 64 == 0
    moments = lazy_zeros(*tables.weight.shape)
    assert moments.data_ptr() % 4096 != tables.weight.data_ptr() % 4096


def test_tables_start_at_zero_and_learn_through_a_random_head(generator):
    tables, head = NgramTables(5, 4, orders=(1, 2), rows=30), nn.Linear(4, 1)
    tokens = torch.randint(5, (3, 20), generator=generator)
    assert not any(part.any() for part in tables(tokens))
    head(tables(tokens)[0]).square().sum().backward()
    assert tables.weight.grad is not None
    assert tables.weight.grad._values().any()
    with torch.no_grad():
        tables.weight += 1
    tables.reset_parameters()
    assert not tables.weight.any()


def test_the_bag_is_that_of_scikit_learns_tfidf(generator):
    """Which takes 1 + log(n) for log(1 + n), so that the counts are compared by hand."""
    train = torch.tensor([[1, 2, 1, 2, 1], [3, 3, 3, 0, 0], [4, 4, 4, 4, 4], [1, 2, 3, 4, 0]])
    lengths = [5, 3, 5, 4]
    tables = NgramTables(5, 4, orders=(1, 2), rows=30)
    torch.nn.init.normal_(tables.weight, generator=generator)
    tables.count([(train[:2], lengths[:2]), (train[2:], lengths[2:])], at_least=1)
    tokens = torch.tensor([[1, 2, 1, 2, 1], [3, 3, 3, 0, 0], [4, 4, 4, 4, 4]])
    found = tables(tokens, [5, 3, 0])[1]

    # 1, 2, (1, 2) and 3 are in two of four sequences, the pairs (2, 1) and (3, 3) in one.
    common, rare = 1 + math.log(5 / 3), 1 + math.log(5 / 2)
    bags = [
        {1: math.log(4) * common, 2: math.log(3) * common, 5 + 7: math.log(3) * common, 5 + 11: math.log(3) * rare},
        {3: math.log(4) * common, 5 + 18: math.log(3) * rare},
    ]
    for row, weights in enumerate(bags):
        numbers, factors = list(weights), torch.tensor(list(weights.values()))
        expected = (factors / factors.norm()) @ tables.weight[numbers]
        # A rarity has a sixteenth of precision.
        torch.testing.assert_close(found[row], expected, atol=0.02, rtol=0.02)
    assert not found[2].any()


def test_the_shares_of_positions_add_up_to_the_bag(generator):
    tables = NgramTables(5, 4, orders=(1, 2, 3), rows=30)
    torch.nn.init.normal_(tables.weight, generator=generator)
    tokens = torch.randint(5, (3, 20), generator=generator)
    shares = tables.bag_shares(tokens, [20, 7, 0])
    torch.testing.assert_close(shares.sum(1), tables(tokens, [20, 7, 0])[1])
    assert not shares[1, 7:].any()
    alike = torch.tensor([[2, 2, 2]])
    assert not tables.bag_shares(alike)[0, 1].equal(torch.zeros(4))
    assert not NgramTables(5, 4, orders=(1,), rows=30).bag_shares(alike)[0, 1:].any()


def test_dropout_leaves_positions_out_while_training_and_keeps_the_mean():
    tables = NgramTables(5, 4, orders=(1, 2), rows=30, dropout=0.25)
    tables.weight.data.fill_(1.0)
    tokens = torch.randint(5, (8, 1000), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    (dropped, dropped_bag), (whole, bag) = tables(tokens), tables.eval()(tokens)
    left_out = (dropped == 0).all(-1)
    assert 0.22 < left_out.double().mean() < 0.28
    torch.testing.assert_close(dropped[~left_out], whole[~left_out] / 0.75)
    tables.train()
    mean = torch.stack([tables(tokens)[1] for _ in range(300)]).mean(0)
    torch.testing.assert_close(mean, bag, rtol=0.1, atol=0)
    assert not torch.equal(dropped_bag, bag)


def test_counting_admits_ngrams_of_enough_sequences():
    tables = NgramTables(5, 4, orders=(1, 2), rows=30)
    assert tables.rarity.all()
    # 1 and (1, 1) occur in two sequences, 2 in one, though three times.
    batches = [(torch.tensor([[1, 1, 4], [2, 2, 2]]), [2, 3]), (torch.tensor([[1, 1]]), None)]
    tables.count(iter(batches))
    assert tables.rarity.nonzero().flatten().tolist() == [1, 5 + 6]
    tables.count(iter(batches), at_least=1)
    assert tables.rarity.nonzero().flatten().tolist() == [1, 2, 5 + 6, 5 + 12]
    assert tables.rarity[1] == round(16 * (1 + math.log(4 / 3)))
    assert tables.rarity[2] == round(16 * (1 + math.log(4 / 2)))
    with pytest.raises(ValueError, match="at_least=0"):
        tables.count([], at_least=0)


def test_modules_name_their_row_sparse_parameters():
    model = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"tables": NgramTables(5, 4, (1,), 9)}))
    assert row_sparse_names(model) == ["1.tables.weight"]
    assert row_buffer_names(model) == ["1.tables.rarity"]
    assert row_sparse_names(NgramTables(5, 4, (1,), 9)) == ["weight"]


def test_a_table_on_the_meta_device_has_no_memory():
    with torch.device("meta"):
        tables = NgramTables(256, 2**20, rows=2**24)
    assert tables.weight.device.type == "meta"


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="width=0"):
        NgramTables(5, 0)
    with pytest.raises(ValueError, match=r"takes .* GB: .*; choose fewer rows"):
        NgramTables(256, 2**40, rows=2**24)
