"""A saved model comes back bit for bit, and a damaged folder gives one clear error."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import paramixer as pm
from paramixer import files
from paramixer.baselines import registry
from paramixer.nn import pretrained

CONFIG = pm.ParamixerConfig(
    layer="paper",
    length=16,
    outputs=3,
    vocabulary=7,
    channels=4,
    hidden=5,
    protocol="links",
    table=[[0, 1], [0, -6]],
    pad=0,
)
IDS = torch.arange(16).remainder(7).reshape(1, 16)


@pytest.fixture
def folder(tmp_path, generator):
    pm.Paramixer(CONFIG, generator=generator).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("name", ["adding", "listops", "image", "text"])
def test_outputs_are_the_same_bit_for_bit_after_loading(name, tmp_path, generator):
    config = pm.preset(name, length=48)
    model = pm.Paramixer(config, generator=generator).eval()
    model.save_pretrained(tmp_path)
    loaded = pm.Paramixer.from_pretrained(tmp_path)
    inputs = torch.randn(2, 48, 2, generator=generator) if config.features else torch.randint(7, (2, 48))
    assert loaded.config == config
    assert not loaded.training
    assert torch.equal(loaded(inputs), model(inputs))


def test_a_model_with_ngrams_of_words_comes_back(tmp_path, generator):
    config = pm.ParamixerConfig(
        length=16, outputs=2, vocabulary=7, channels=16, hidden=8, ngrams=2, words=2, letters=(0, 0, 1, 2, 3, 4, 5)
    )
    model = pm.Paramixer(config, generator=generator).eval()
    model.save_pretrained(tmp_path)
    loaded = pm.Paramixer.from_pretrained(tmp_path)
    assert loaded.config == config
    assert torch.equal(loaded(IDS), model(IDS))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_a_model_comes_back_in_its_own_dtype(dtype, tmp_path, generator):
    model = pm.Paramixer(CONFIG, generator=generator).to(dtype).eval()
    model.save_pretrained(tmp_path)
    loaded = pm.Paramixer.from_pretrained(tmp_path)
    assert loaded(IDS).dtype == dtype
    assert torch.equal(loaded(IDS), model(IDS))
    assert all(parameter.requires_grad for parameter in loaded.parameters())


def test_a_loaded_model_can_go_on_learning(folder):
    model = pm.Paramixer.from_pretrained(folder).train()
    before = model(IDS).detach()
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    model(IDS).sum().backward()
    optimizer.step()
    assert not torch.equal(model(IDS), before)
    assert (model.embedding.weight[0] == 0).all()


def test_the_folder_holds_data_only(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert json.loads((folder / "config.json").read_text())["format"] == 3


def test_saving_again_replaces_the_model(folder):
    model = pm.Paramixer(pm.preset("listops", length=16))
    model.save_pretrained(folder)
    assert torch.equal(pm.Paramixer.from_pretrained(folder)(IDS), model.eval()(IDS))


@pytest.mark.parametrize("lost", range(4))
def test_an_interrupted_save_leaves_the_old_model_or_a_clear_error(folder, lost, monkeypatch):
    """The process dies at the n-th fsync or rename: the old pair, the new pair, or an error; never a mixture."""
    old = pm.Paramixer.from_pretrained(folder)
    new = pm.Paramixer(CONFIG, generator=torch.Generator().manual_seed(5)).eval()
    steps = iter(range(100))

    def dying(function):
        def step(*arguments):
            if next(steps) == lost:
                raise KeyboardInterrupt
            return function(*arguments)

        return step

    monkeypatch.setattr(files.os, "fsync", dying(files.os.fsync))
    monkeypatch.setattr(files.Path, "replace", dying(files.Path.replace))
    with pytest.raises(KeyboardInterrupt):
        new.save_pretrained(folder)
    answer = pm.Paramixer.from_pretrained(folder)(IDS)
    assert torch.equal(answer, old(IDS)) or torch.equal(answer, new(IDS))
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]


def edit_config(folder, **changes):
    path = folder / "config.json"
    document = json.loads(path.read_text())
    document["config"] |= changes.pop("config", {})
    path.write_text(json.dumps(document | changes))


def rewrite_weights(folder, change):
    path = folder / "model.safetensors"
    state = load_file(path)
    change(state)
    save_file(state, path)


# Without the table of offsets, which fixes factors and links.
FREE = {"protocol": "chord", "table": None}

DAMAGES = {
    "NaN": (
        lambda f: rewrite_weights(f, lambda state: state["blocks.0.w1"].view(-1)[3].fill_(torch.nan)),
        "blocks.0.w1 has 1 numbers that are NaN",
    ),
    "infinity": (
        lambda f: rewrite_weights(f, lambda state: state["head.linear.bias"].fill_(-torch.inf)),
        "head.linear.bias has 3 numbers",
    ),
    "no config": (lambda f: (f / "config.json").unlink(), "config.json is missing; .* is not a saved Paramixer"),
    "config cut": (
        lambda f: (f / "config.json").write_text('{"format": 1, '),
        "config.json is damaged, it is not JSON",
    ),
    "config of bytes": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe\x00"), "is damaged, it is not JSON"),
    "foreign config": (lambda f: (f / "config.json").write_text('{"model_type": "bert"}'), "another library's model"),
    "config is a list": (lambda f: (f / "config.json").write_text("[1]"), "does not describe a Paramixer"),
    "newer format": (
        lambda f: edit_config(f, format=4),
        "has format 4, .* reads up to format 3; install a newer paramixer",
    ),
    "no format": (lambda f: edit_config(f, format=None), "has format None, which no version"),
    "format true": (lambda f: edit_config(f, format=True), "has format True, which no version"),
    "endless config": (lambda f: (f / "config.json").write_text("[" * 100_000), "is damaged, it is not JSON"),
    "config is a folder": (lambda f: ((f / "config.json").unlink(), (f / "config.json").mkdir()), "is damaged"),
    "enormous length": (lambda f: edit_config(f, config={"length": 10**7}), "positions.weight has shape"),
    "absurd length": (lambda f: edit_config(f, config={"length": 10**18}), "length=1000000000000000000; no model has"),
    "a million blocks": (
        lambda f: edit_config(f, config={"blocks": 10**6}),
        "config.json: blocks=1000000 does not fit model.safetensors, which holds 12 tensors",
    ),
    "factors": (lambda f: edit_config(f, config=FREE | {"factors": 10**8}), "factors=100000000 does not fit"),
    "links": (lambda f: edit_config(f, config=FREE | {"links": 10**8}), "links=100000000 does not fit"),
    "factors and links": (
        lambda f: edit_config(f, config=FREE | {"factors": 300, "links": 300}),
        "factors=300 and links=300 do not fit",
    ),
    "infinite dropout": (
        lambda f: edit_config(f, config={"block_dropout": 1e999}),
        "is damaged, it is not JSON: Infinity is no number",
    ),
    "a bool": (lambda f: edit_config(f, config={"blocks": True}), "wrong config: blocks=True"),
    "negative": (
        lambda f: edit_config(f, config={"outputs": -3}),
        "=-3; no model has that, it must be positive",
    ),
    "huge config": (lambda f: (f / "config.json").write_text(" " * (2**24 + 1)), "the most is 16,777,216"),
    "config null": (lambda f: (f / "config.json").write_text('{"model_type": "paramixer", "format": 2}'), "no config"),
    "unknown setting": (lambda f: edit_config(f, config={"widht": 3}), "unknown settings: widht"),
    "wrong setting": (lambda f: edit_config(f, config={"hidden": "many"}), "wrong config: hidden='many'"),
    "impossible setting": (lambda f: edit_config(f, config={"outputs": 0}), "wrong config: outputs=0"),
    "other shape": (
        lambda f: edit_config(f, config={"hidden": 6}),
        r"w1 has shape \[2, 4, 5\].*asks for \[2, 4, 6\]",
    ),
    "other meaning": (lambda f: edit_config(f, config={"residual": "none"}), "saved with another config"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
    "weights cut": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-9]),
        "damaged",
    ),
    "weights empty": (lambda f: (f / "model.safetensors").write_bytes(b""), "damaged or no safetensors"),
    "foreign weights": (
        lambda f: (f / "model.safetensors").write_bytes(b"PK\x03\x04" * 50),
        "damaged or no safetensors",
    ),
    "missing tensor": (lambda f: rewrite_weights(f, lambda s: s.pop("blocks.0.w1")), "lacks tensors: blocks.0.w1"),
    "foreign tensor": (lambda f: rewrite_weights(f, lambda s: s.update(x=torch.ones(1))), "has unknown tensors: x"),
    "other dtype": (
        lambda f: rewrite_weights(f, lambda s: s.update({"blocks.0.b1": s["blocks.0.b1"].double()})),
        "tensors of torch.float32 and torch.float64; expected one float dtype",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_gives_one_clear_error(folder, damage):
    harm, message = DAMAGES[damage]
    harm(folder)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        pm.Paramixer.from_pretrained(folder)
    assert str(folder) in str(caught.value)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder .*nowhere"):
        pm.Paramixer.from_pretrained(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file; give the folder"):
        pm.Paramixer.from_pretrained(tmp_path / "file")


def test_a_name_that_no_hub_could_have_is_a_missing_folder():
    with pytest.raises(FileNotFoundError, match="there is no folder runs/li stops!"):
        pm.Paramixer.from_pretrained("runs/li stops!")


def test_saving_onto_a_file_says_so(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="give a folder to save into"):
        pm.Paramixer(CONFIG).save_pretrained(tmp_path / "file")


FORMAT_1 = Path(__file__).parent / "format_1"


@pytest.mark.parametrize("name", ["paramixer", "linear", "ngrams"])
def test_folders_of_format_1_are_read(name, tmp_path):
    """Written by the last version with format 1, with what their models answered then."""
    load = pm.Paramixer.from_pretrained if name == "paramixer" else registry.load_pretrained
    ids = torch.tensor([[1, 2, 3, 4, 0, 0], [4, 3, 2, 1, 1, 2]])
    model = load(FORMAT_1 / name)
    expected = torch.tensor(json.loads((FORMAT_1 / "answers.json").read_text())[name])
    torch.testing.assert_close(model(ids), expected)
    model.save_pretrained(tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    assert document["format"] == 3
    assert (
        document["model_type"]
        == pretrained.model_type(tmp_path)
        == ("paramixer" if name == "paramixer" else "baseline")
    )
    again = load(tmp_path)
    assert again.config == model.config
    assert torch.equal(again(ids), model(ids))


def test_a_changed_config_of_format_1_is_noticed(tmp_path):
    shutil.copytree(FORMAT_1 / "paramixer", tmp_path / "model")
    edit_config(tmp_path / "model", config={"ring": False})
    with pytest.raises(ValueError, match="saved with another config"):
        pm.Paramixer.from_pretrained(tmp_path / "model")


def test_a_model_of_the_other_type_is_named(folder):
    with pytest.raises(ValueError, match="describes a baseline; load it with baselines.registry.load_pretrained"):
        pm.Paramixer.from_pretrained(FORMAT_1 / "linear")
    with pytest.raises(ValueError, match="describes a paramixer; load it with Paramixer.from_pretrained"):
        registry.load_pretrained(folder)


def test_a_hub_name_is_downloaded_without_anything_but_data(folder, monkeypatch):
    asked = []

    def download(name, allow_patterns):
        asked.append((name, allow_patterns))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert pm.Paramixer.from_pretrained("someone/some-model").config == CONFIG
    assert asked == [("someone/some-model", ["config.json", "model.safetensors"])]
