from __future__ import annotations

import pytest
import torch

import paramixer as pm
from paramixer.ops import checks


def factor(**changes):
    return {"weights": torch.ones(2, 5, 3), "values": torch.ones(2, 5, 4), "offsets": [0, 1, 2]} | changes


def chain(**changes):
    sizes = {"batch": 2, "length": 5, "inputs": 3, "channels": 4, "hidden": 6, "links": 2, "factors": 3}
    axes = {
        "inputs": "batch length inputs",
        "values": "batch length channels",
        "w1": "factors inputs hidden",
        "b1": "factors hidden",
        "w2": "factors hidden links",
        "b2": "factors links",
    }
    tensors = {name: torch.ones([sizes[axis] for axis in names.split()]) for name, names in axes.items()}
    return tensors | {"offsets": [[0, 1]] * 3} | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": torch.ones(5, 3)}, r"link_mix: weights has shape \[5, 3\], expected \[batch, length, links\]"),
        ({"weights": torch.ones(2, 6, 3)}, r"weights has shape \[2, 6, 3\].* length is 6; but values has length 5"),
        ({"weights": torch.ones(2, 5, 0), "offsets": []}, "weights has no links"),
        ({"values": torch.ones(2, 5, 0)}, "values has no channels"),
        ({"offsets": None}, "offsets cannot be read as whole numbers"),
        ({"offsets": [[0], [1, 2]]}, "offsets cannot be read as whole numbers"),
        ({"offsets": [True, False, True]}, "offsets are torch.bool"),
        ({"ring": None}, "ring=None; it is True or False"),
        ({"offsets": [0, 1]}, r"offsets have shape \[2\], expected \[links\] = \[3\]"),
        ({"offsets": [0.0, 1.0, 2.0]}, "offsets are torch.float32, expected whole numbers"),
        ({"lengths": [5]}, r"lengths have shape \[1\], expected \[batch\] = \[2\]"),
        ({"lengths": [5, 6]}, r"lengths\[1\] is 6, expected 0 to 5"),
        ({"lengths": [-1, 2]}, r"lengths\[0\] is -1, expected 0 to 5"),
        ({"lengths": [1.5, 2.0]}, "lengths are torch.float32, expected whole numbers"),
        ({"values": torch.ones(2, 5, 4, dtype=torch.float64)}, "weights is torch.float32, but values is torch.float64"),
        ({"values": torch.ones(2, 5, 4).long()}, "values is torch.int64, expected one of torch.float32"),
        ({"values": [[1.0]]}, "values is a list, expected a torch.Tensor"),
        ({"weights": torch.ones(2, 5, 3, device="meta")}, "weights is on meta, but values is on cpu"),
    ],
)
def test_link_mix_says_what_is_wrong(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        pm.link_mix(**factor(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": torch.ones(2, 4, 3)}, "inputs has shape .*length is 4; but values has length 5"),
        ({"inputs": torch.ones(3, 5, 3)}, "inputs has shape .*batch is 3; but values has batch 2"),
        ({"w1": torch.ones(3, 4, 6)}, "w1 has shape .*inputs is 4; but inputs has inputs 3"),
        ({"b1": torch.ones(3, 7)}, "b1 has shape .*hidden is 7; but w1 has hidden 6"),
        ({"w2": torch.ones(2, 6, 2)}, "w2 has shape .*factors is 2; but w1 has factors 3"),
        ({"b2": torch.ones(3, 5)}, "b2 has shape .*links is 5; but w2 has links 2"),
        ({"w2": torch.ones(3, 6)}, r"w2 has shape \[3, 6\], expected \[factors, hidden, links\]"),
        ({"offsets": [[0, 1]]}, r"offsets have shape \[1, 2\], expected \[factors, links\] = \[3, 2\]"),
        ({"residual": "blocks"}, "residual='blocks'; choose from factor, block, none"),
        ({"checkpoint_every": 0}, "checkpoint_every=0; store the input of every factor with 1"),
        ({"lengths": [2, 9]}, r"lengths\[1\] is 9, expected 0 to 5"),
        ({"b1": torch.ones(3, 6).bfloat16()}, "b1 is torch.bfloat16, but values is torch.float32"),
        (
            {"inputs": torch.ones(7, 3), "row_ids": torch.zeros(2, 5)},
            "row_ids are torch.float32",
        ),
        ({"row_ids": torch.zeros(2, 5, dtype=torch.int64)}, r"inputs has shape .*, expected \[rows, inputs\]"),
        (
            {"inputs": torch.ones(7, 3), "row_ids": [[0, 1]]},
            r"row_ids have shape \[1, 2\]",
        ),
        (
            {"inputs": torch.ones(7, 3), "row_ids": torch.full((2, 5), 7)},
            "row id 7 is outside the table, which has 7 rows",
        ),
        (
            {"inputs": torch.ones(7, 3), "row_ids": torch.full((2, 5), -1)},
            "row id -1 is outside the table, which has 7 rows",
        ),
    ],
)
def test_paramix_says_what_is_wrong(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        pm.paramix(**chain(**changes))


def test_empty_lists_and_strided_lengths_are_lengths():
    assert pm.link_mix(torch.ones(0, 5, 3), torch.ones(0, 5, 4), [0, 1, 2], lengths=[]).shape == (0, 5, 4)
    strided = torch.tensor([[3, 9], [5, 9]])[:, 0]
    assert pm.link_mix(**factor(lengths=strided)).shape == (2, 5, 4)


def test_forward_mode_is_refused_instead_of_answered_with_zeros():
    with pytest.raises(RuntimeError, match="link_mix has no forward-mode derivative"):
        torch.func.jvp(
            lambda v: pm.link_mix(torch.ones(2, 5, 3), v, [0, 1, 2]), (torch.ones(2, 5, 4),), (torch.ones(2, 5, 4),)
        )


def test_the_unchanged_arguments_are_right():
    assert pm.link_mix(**factor(lengths=[0, 5])).shape == (2, 5, 4)
    assert pm.paramix(**chain(lengths=torch.tensor([0, 5], dtype=torch.int32))).shape == (2, 5, 4)
    row_ids = torch.ones(2, 5, dtype=torch.int32)
    assert pm.paramix(**chain(inputs=torch.ones(7, 3), row_ids=row_ids)).shape == (2, 5, 4)


def test_numbers_on_a_gpu_are_checked_there_and_right_ones_pass(monkeypatch):
    """The host must not read them; torch's assertion, which on a GPU stops the program later, raises at once here."""
    monkeypatch.setattr(checks, "_is_on_host", lambda tensor: False)
    checks.check_length_values("link_mix", torch.tensor([0, 4]), 4)
    checks.check_row_id_values("paramix", torch.tensor([[0, 4]]), 5)
    checks.check_token_values(torch.tensor([[0, 4]]), 5)
    for check, message in (
        (lambda: checks.check_length_values("link_mix", torch.tensor([5]), 4), "link_mix: a length is outside 0 to 4"),
        (lambda: checks.check_row_id_values("paramix", torch.tensor([-1]), 4), "outside the table, which has 4 rows"),
        (lambda: checks.check_token_values(torch.tensor([4]), 4), "a token is outside the vocabulary, 0 to 3"),
    ):
        with pytest.raises(RuntimeError, match=message):
            check()
