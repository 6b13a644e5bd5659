"""An export and its preprocessing run without this package, and answer as the run does."""

from __future__ import annotations

import errno
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import paramixer as pm
from paramixer import files
from paramixer.cli import main
from paramixer.export import run_export
from paramixer.export.run_export import export_run

WITHOUT = """
import runpy, sys
for name in ("paramixer", *{blocked}):
    sys.modules[name] = None
sys.argv = ["example.py", *sys.argv[1:]]
runpy.run_path({example!r}, run_name="__main__")
"""
TINY = {"channels": 8, "blocks": 1, "heads": 1, "hidden": 2, "link_width": 2, "links": 3, "factors": 1, "ngrams": 2}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on texts of which the classes are easy to tell."""
    folder = tmp_path_factory.mktemp("texts")
    draw = random.Random(0)
    lines = [
        f"{''.join(draw.choices('ab ' if number % 2 else 'xy ', k=30))},{'AB'[number % 2]}" for number in range(60)
    ]
    (folder / "texts.csv").write_text("\n".join(["text,label", *lines]))
    task = pm.data.load(folder / "texts.csv", text="text", label="label")
    settings = pm.ParamixerConfig(
        length=task.length, outputs=2, vocabulary=len(task.vocabulary), pad=task.vocabulary.pad, **TINY
    )
    options = pm.TrainingOptions(steps=30, batch=8, learning_rate=0.02)
    pm.fit(pm.Paramixer(settings), task, options, folder=folder / "run")
    return folder / "run"


def run_example(example, *words, blocked=("torch",)):
    program = WITHOUT.format(example=str(example), blocked=tuple(blocked))
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


TEXTS = ["ab ab abba b", "xyxy x", "y", "ab  \u00e9 never seen \U0001f600", "b" * 500]


def test_the_example_needs_neither_this_package_nor_torch(run, tmp_path, capsys):
    out = tmp_path / "new" / "reviews.onnx"
    assert main(["export", str(run), "--out", str(out)]) == 0
    assert "differs from the model by at most" in capsys.readouterr().out
    expected = [row["prediction"] for row in pm.load(run).predict(TEXTS)]
    assert run_example(out.with_name("example.py"), *TEXTS) == expected
    assert len(set(expected)) == 2


@pytest.mark.slow
def test_a_program_of_torch_needs_no_class_of_ours(run, tmp_path):
    exported = export_run(run, "pt2", tmp_path)
    assert exported.model == tmp_path / "model.pt2"
    code = (
        "import sys; sys.modules['paramixer'] = None\n"
        "import torch\n"
        f"program = torch.export.load({str(exported.model)!r}).module()\n"
        "for batch, width in ((1, 1), (3, 20)):\n"
        "    answers = program(torch.ones(batch, width, dtype=torch.int64), torch.full((batch,), width))\n"
        "    assert answers.shape == (batch, 2)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_preprocessing_is_complete(run):
    document = json.loads((export_run(run, "pt2").preprocessing).read_text())
    assert document["kind"] == "symbols"
    assert document["classes"] == ["A", "B"]
    assert document["symbols"][document["pad"]] == "<pad>"
    assert document["symbols"][document["cls"]] == "<cls>"
    assert document["inputs"] == ["inputs", "lengths"]
    assert document["model"] == "model.pt2"


def test_an_export_that_differs_leaves_no_file(run, tmp_path):
    with pytest.raises(ValueError, match=r"the pt2 export differs from the model by .* more than 1e-30"):
        export_run(run, "pt2", tmp_path / "new", tolerance=1e-30)
    assert not (tmp_path / "new").exists()


def test_a_file_of_somebody_else_is_not_replaced(run, tmp_path):
    (tmp_path / "example.py").write_text("mine")
    with pytest.raises(
        ValueError, match=r"example.py exists and is no example of paramixer export; give --out another"
    ):
        export_run(run, "pt2", tmp_path)
    assert (tmp_path / "example.py").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "onnx", "--out", "a.pt2"], "a.pt2 is no file of --format onnx; name it a.onnx"),
        (["--out", "taken/model.onnx"], "taken is a file, not a folder"),
    ],
)
def test_a_wrong_output_is_refused_at_once(words, message, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_export, "trace", None)
    (tmp_path / "taken").write_text("")
    assert main(["export", str(run), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_full_disk_names_the_file(run, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_synced", full)
    with pytest.raises(OSError, match=r"model.pt2 cannot be written: no space is left; nothing was written; free some"):
        export_run(run, "pt2", tmp_path)


def test_the_example_opens_a_pt2_with_torch_and_says_what_it_takes(run, tmp_path, capsys):
    assert main(["export", str(run), "--format", "pt2", "--out", str(tmp_path)]) == 0
    example = tmp_path / "example.py"
    expected = [row["prediction"] for row in pm.load(run).predict(TEXTS)]
    assert run_example(example, *TEXTS, blocked=("onnxruntime",)) == expected
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Answers of an exported model")


def test_the_example_refuses_what_is_no_list_of_numbers(tmp_path):
    out = tmp_path / "export"
    out.mkdir()
    (out / "example.py").write_bytes(Path(run_export.__file__).with_name("example.py").read_bytes())
    (out / "preprocessing.json").write_text(json.dumps({"kind": "numbers", "features": 2, "length": 9}))
    for word in ("abc", "[[1, 2], [3]]", "7"):
        done = subprocess.run([sys.executable, str(out / "example.py"), word], capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr.startswith("the model reads lists of 2 numbers: ")
        assert done.stderr.count("\n") == 1
