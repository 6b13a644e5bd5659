"""NgramTables: memory, counting, learning."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from paramixer.nn.ngrams import NgramTables, row_flag_names, row_sparse_names
from paramixer.ops.lazy_zeros import lazy_zeros


def resident_bytes() -> int:
    """Memory that this process has touched."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_large_table_takes_no_memory_before_it_is_used():
    # What torch imports at the first call of an op is no memory of a table.
    NgramTables(5, 4, orders=(1,), rows=9)(torch.zeros(1, 9, dtype=torch.int64)).sum().backward()
    before = resident_bytes()
    tables = NgramTables(256, 16, orders=(4, 5), rows=2**21)
    tables.reset_parameters()
    tables(torch.zeros(1, 9, dtype=torch.int64)).sum().backward()
    # The flags take 4 MB, the table would take 268 MB; a page that is read may be two megabytes.
    assert resident_bytes() - before < 60e6
    assert tables.weight.data_ptr() % 64 == 0
    moments = lazy_zeros(*tables.weight.shape)
    assert moments.data_ptr() % 4096 != tables.weight.data_ptr() % 4096


def test_tables_start_at_zero_and_learn_through_a_random_head(generator):
    tables, head = NgramTables(5, 4, orders=(1, 2), rows=30), nn.Linear(4, 1)
    tokens = torch.randint(5, (3, 20), generator=generator)
    assert not tables(tokens).any()
    head(tables(tokens)).square().sum().backward()
    assert tables.weight.grad is not None
    assert tables.weight.grad._values().any()
    with torch.no_grad():
        tables.weight += 1
    tables.reset_parameters()
    assert not tables.weight.any()


def test_the_mean_of_distinct_ngrams_counts_each_once(generator):
    tables = NgramTables(5, 4, orders=(1, 2), rows=30)
    torch.nn.init.normal_(tables.weight, generator=generator)
    tokens = torch.tensor([[1, 2, 1, 2, 1], [3, 3, 3, 0, 0], [4, 4, 4, 4, 4]])
    mean = tables.mean_of_distinct(tables.find_rows(tokens, [5, 3, 0]))
    expected = [[1, 2, 5 + 7, 5 + 11], [3, 5 + 18]]
    for row, numbers in enumerate(expected):
        torch.testing.assert_close(mean[row], tables.weight[numbers].mean(0))
    assert not mean[2].any()


def test_dropout_leaves_positions_out_while_training_and_keeps_the_mean():
    tables = NgramTables(5, 4, orders=(1, 2), rows=30, dropout=0.25)
    tables.weight.data.fill_(1.0)
    tokens = torch.randint(5, (8, 1000), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    dropped, whole = tables(tokens), tables.eval()(tokens)
    left_out = (dropped == 0).all(-1)
    assert 0.22 < left_out.double().mean() < 0.28
    torch.testing.assert_close(dropped[~left_out], whole[~left_out] / 0.75)


def test_counting_admits_ngrams_of_enough_sequences():
    tables = NgramTables(5, 4, orders=(1, 2), rows=30)
    assert tables.admitted.all()
    # 1 and (1, 1) occur in two sequences, 2 in one, though three times.
    batches = [(torch.tensor([[1, 1, 4], [2, 2, 2]]), [2, 3]), (torch.tensor([[1, 1]]), None)]
    tables.count(iter(batches))
    assert tables.admitted.nonzero().flatten().tolist() == [1, 5 + 6]
    tables.count(iter(batches), at_least=1)
    assert tables.admitted.nonzero().flatten().tolist() == [1, 2, 5 + 6, 5 + 12]
    with pytest.raises(ValueError, match="at_least=256"):
        tables.count([], at_least=256)


def test_modules_name_their_row_sparse_parameters():
    model = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"tables": NgramTables(5, 4, (1,), 9)}))
    assert row_sparse_names(model) == ["1.tables.weight"]
    assert row_flag_names(model) == ["1.tables.admitted"]
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
