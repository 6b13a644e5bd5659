"""Tables in files: size, bits, and files that are damaged."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save
from torch import nn

from nn.test_pretrained import rewrite_weights
from paramixer.nn.ngrams import NgramTables
from paramixer.nn.row_storage import RowStorage
from table_model import TableModel, make_model

IDS = torch.arange(12).remainder(6).reshape(1, 12)


@pytest.fixture
def model(generator):
    """With some rows that are not zero, and some that are left out."""
    made = make_model()
    with torch.no_grad():
        made.tables.weight[100:140] = torch.randn(40, 6, generator=generator)
        made.tables.weight[0] = -0.0
        made.tables.weight[-1, 3] = 1e-42
        made.tables.rarity[torch.randint(made.tables.layout.total, (500,), generator=generator)] = 0
    return made.eval()


@pytest.fixture
def folder(model, tmp_path):
    model.save_pretrained(tmp_path)
    return tmp_path


def bits(model: nn.Module) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in model.state_dict().items()}


def test_a_model_with_tables_comes_back_bit_for_bit(model, folder):
    loaded = TableModel.from_pretrained(folder)
    assert bits(loaded) == bits(model)
    assert torch.equal(loaded(IDS), model(IDS))
    loaded(IDS).sum().backward()
    assert loaded.tables.weight.grad.is_sparse


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_tables_come_back_in_their_own_dtype(model, dtype, tmp_path):
    model.to(dtype).save_pretrained(tmp_path)
    loaded = TableModel.from_pretrained(tmp_path)
    assert loaded.tables.weight.dtype == dtype
    assert loaded.tables.rarity.dtype == torch.uint8
    assert torch.equal(loaded(IDS), model(IDS))


def test_a_file_grows_with_the_rows_that_are_not_zero():
    tables = NgramTables(256, 16, orders=(2, 3), rows=2**16)
    storage = RowStorage.of(tables)
    empty = len(save(storage.pack(tables.state_dict())))
    assert tables.layout.total == 2 * 2**16 <= empty < 2 * 2**16 + 1_000
    with torch.no_grad():
        tables.weight[7:1007] = 1.0
    assert 68_000 <= len(save(storage.pack(tables.state_dict()))) - empty < 69_000


def change_rows(change):
    return lambda state: state.update({"tables.weight:rows": change(state["tables.weight:rows"])})


DAMAGES = {
    "row outside": (change_rows(lambda rows: rows + 3000), r"has rows 3000 to .*, its table has 1554"),
    "negative row": (change_rows(lambda rows: rows - 1), r"has rows -1 to"),
    "row twice": (change_rows(lambda rows: rows.clone().fill_(5)), "not in ascending order; the file is damaged"),
    "rows as floats": (change_rows(lambda rows: rows.float()), "rows of torch.float32"),
    "rows of two axes": (
        change_rows(lambda rows: rows[None]),
        r"rows \[1, 42\] and values \[42, 6\]",
    ),
    "fewer rows than values": (change_rows(lambda rows: rows[1:]), r"rows \[41\] and values \[42, 6\]"),
    "other width": (
        lambda state: state.update({"tables.weight:values": state["tables.weight:values"][:, :5].contiguous()}),
        r"do not fit into a table of shape \[1554, 6\]",
    ),
    "values as whole numbers": (
        lambda state: state.update({"tables.weight:values": state["tables.weight:values"].nan_to_num().int()}),
        "values of torch.int32",
    ),
    "no rows": (lambda state: state.pop("tables.weight:rows"), "lacks tensors: tables.weight;"),
    "no rarities": (lambda state: state.pop("tables.rarity"), "lacks tensors: tables.rarity"),
    "fewer rarities": (
        lambda state: state.update({"tables.rarity": state["tables.rarity"][1:].clone()}),
        r"tables.rarity has shape \[1553\], the config asks for \[1554\]",
    ),
    "rarities as floats": (
        lambda state: state.update({"tables.rarity": state["tables.rarity"].float()}),
        "has tables.rarity of torch.float32, expected torch.uint8",
    ),
    "a table stored whole": (
        lambda state: state.update({"tables.weight": torch.zeros(1554, 6)}),
        "tables.weight is stored whole, expected its rows only; save the model again",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_gives_one_clear_error(folder, damage):
    harm, message = DAMAGES[damage]
    rewrite_weights(folder, harm)
    with pytest.raises(ValueError, match=message) as caught:
        TableModel.from_pretrained(folder)
    assert str(folder) in str(caught.value)


def test_the_names_in_a_file_say_what_they_hold(folder):
    names = load_file(folder / "model.safetensors").keys()
    assert {name for name in names if name.startswith("tables")} == {
        "tables.weight:rows",
        "tables.weight:values",
        "tables.rarity",
    }
