"""``paramixer train`` and ``evaluate`` as a user meets them."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from paramixer.cli import main
from paramixer.cli.settings import merge_settings
from paramixer.training.runs.folder import RunFolder

SMALL = ["--batch", "4", "--set", "training.steps=6", "--set", "training.evaluate_every=3"]
MODEL = ["--set", "model.channels=6", "--set", "model.hidden=5"]
SIZES = ["--set", "data.train=40", "--set", "data.validation=9", "--set", "data.test=7"]
STARS = ["reviews.csv", "--text", "review", "--label", "stars"]
ORDER = ["train", "order", "--length", "12", *SIZES, *SMALL, *MODEL]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def reviews(tmp_path) -> Path:
    """Texts of many lengths, with names and stars."""
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "review", "stars"])
        for number in range(60):
            writer.writerow([f"r{number}", ("good " if number % 2 else "bad ") * (1 + number % 7), 1 + number % 2])
    return path


def test_train_needs_nothing_but_a_task_and_prints_what_it_chose(capsys):
    assert main(ORDER) == 0
    text = capsys.readouterr().out
    for words in ("N = 12", "4 classes", "metric error", "1 layer of CDIL", "backend", "run folder runs/order-1"):
        assert words in text
    assert re.search(r"test error 0\.\d+ \(95 % interval 0\.\d+ to [01]\.\d+\)", text)
    assert main(ORDER) == 0
    assert "runs/order-2" in capsys.readouterr().out


def test_evaluate_measures_the_same_again(capsys):
    assert main([*ORDER, "--out", "run"]) == 0
    record = RunFolder(Path("run")).read_record()
    capsys.readouterr()
    assert main(["evaluate", "run"]) == 0
    assert f"error {record['test']['error']:.4f}" in capsys.readouterr().out
    assert main(["evaluate", "run", "--split", "validation", "--batch", "3"]) == 0
    assert "validation, 9 sequences: " in capsys.readouterr().out


def test_a_run_is_repeated_from_its_own_config():
    assert main([*ORDER, "--seed", "3", "--out", "one"]) == 0
    assert main(["train", "--config", "one/config.yaml", "--out", "two"]) == 0
    assert Path("one/config.yaml").read_text() == Path("two/config.yaml").read_text()
    assert Path("one/model/model.safetensors").read_bytes() == Path("two/model/model.safetensors").read_bytes()


def test_print_config_and_config_round_trip(capsys):
    assert main([*ORDER, "--recipe", "paper", "--set", "init.name=identity", "--print-config"]) == 0
    printed = capsys.readouterr().out
    assert not Path("runs").exists()
    Path("given.yaml").write_text(printed)
    assert main(["train", "--config", "given.yaml", "--print-config"]) == 0
    assert capsys.readouterr().out == printed
    settings = yaml.safe_load(printed)
    assert settings["init"]["name"] == "identity"
    assert settings["training"]["learning_rate"] > 0
    assert main(["train", "--config", "given.yaml", "--set", "training.steps=2", "--out", "run"]) == 0
    assert RunFolder(Path("run")).read_record()["steps"] == 2


def test_the_command_line_overrules_a_file_wherever_it_stands(capsys):
    document = {"task": "adding", "training": {"steps": 7, "batch": 3}, "data": {"length": 9, "train": 20}}
    Path("c.yaml").write_text(yaml.safe_dump(document))
    for words in (
        ["order", "--set", "training.steps=3", "--batch", "5", "--config", "c.yaml"],
        ["--config=c.yaml", "order", "--batch", "5", "--set", "training.steps=3"],
    ):
        assert main(["train", *words, "--print-config"]) == 0
        settings = yaml.safe_load(capsys.readouterr().out)
        assert settings["task"] == "order"
        assert settings["data"] == {"length": 9, "train": 20}
        assert (settings["training"]["steps"], settings["training"]["batch"]) == (3, 5)


@pytest.mark.parametrize(
    ("assignment", "section", "value"),
    [
        ("training.learning_rate=1e-3", "training", {"learning_rate": 0.001}),
        ("training.minutes=2", "training", {"minutes": 2}),
        ("training.compile=true", "training", {"compile": True}),
        ("training.clip=null", "training", {"clip": None}),
        ("model.table=[[0, 1], [0, 2]]", "model", {"table": [[0, 1], [0, 2]]}),
        ("data.label=1", "data", {"label": "1"}),
        ("data.text=true", "data", {"text": "true"}),
        ("data.validation=9", "data", {"validation": 9}),
        ("data.validation=0.5", "data", {"validation": 0.5}),
        ("data.source=a=b.csv", "data", {"source": "a=b.csv"}),
        ("model.block-dropout=0.1", "model", {"block_dropout": 0.1}),
    ],
)
def test_values_are_read_as_the_type_of_their_key(assignment, section, value):
    assert merge_settings(None, [assignment], {}) == {section: value}


def test_a_file_has_numbers_with_exponents_as_the_command_line_has():
    Path("c.yaml").write_text("training: {learning_rate: 1e-3}\ndata: {label: 1e-3}\n")
    assert merge_settings(Path("c.yaml"), [], {}) == {
        "training": {"learning_rate": 0.001},
        "data": {"label": "1e-3"},
    }


def test_the_settings_of_the_run_have_no_section():
    assert merge_settings(None, ["seed=3", "match_parameters=true"], {"task": "order"}) == {
        "task": "order",
        "seed": 3,
        "match_parameters": True,
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a task or a file"),
        (["ordre"], "did you mean 'order'"),
        (["order", "--batch", "0"], "batch=0; it must be at least 1"),
        (["order", "--set", "training.batch=0"], "training.batch=0; it must be at least 1"),
        (["order", "--set", "model.channels=0", "--length", "12"], "model.channels=0; it must be at least 1"),
        (["order", "--set", "model.chanels=12"], "there is no setting 'model.chanels'; did you mean model.channels?"),
        (["order", "--set", "hidden=12"], "there is no setting 'hidden'; did you mean model.hidden?"),
        (["order", "--set", "training.hidden=12"], "did you mean model.hidden?"),
        (["order", "--set", "patiense=12"], "did you mean training.patience?"),
        (["order", "--set", "abracadabra=12"], "paramixer train --help-all lists them"),
        (["order", "--set", "hidden"], "write KEY=VALUE"),
        (["order", "--set", "model.length=12"], "model.length: the data decides it; leave it out, or give data.length"),
        (["order", "--set", "model.vocabulary=4"], "model.vocabulary: the data decides it; leave it out\n"),
        (["order", "--set", "model.pad=4"], "model.pad: the data decides it; leave it out\n"),
        (["order", "--set", "training.steps=abc"], "training.steps=abc; it must be a whole number"),
        (["order", "--set", "training.schedule=cosin"], "training.schedule=cosin; it must be one of constant, cosine"),
        (["order", "--set", "training.steps=true"], "training.steps=True; it must be a whole number"),
        (["order", "--batch", "3", "--set", "training.batch=4"], "training.batch is given twice"),
        (["order", "--recipe", "papr"], "papr"),
        (["order", "--model", "transfomer"], "did you mean 'transformer'"),
        (["--resume", "nowhere"], "nowhere is no run folder"),
        (["--config", "nowhere.yaml"], "paramixer: nowhere.yaml: there is no such file"),
        (["--config", "."], ". is a folder; give a YAML file"),
        (["--config", "null.yaml"], "system=null; it must be a text"),
        (["--config", "labels.yaml"], "data.labels=3; it must be a path"),
        (["--config", "source.yaml"], "data.source=[1]; it must be a path"),
        (["--config", "list.yaml"], "list.yaml holds no settings"),
        (["--config", "flat.yaml"], "there is no setting 'batch'; did you mean training.batch?"),
        (["--config", "broken.yaml"], "broken.yaml is no YAML"),
        (["--config", "section.yaml"], "section.yaml: model is a section"),
        (["order", "--set", "model.pooling=token", *SIZES], "pooling='token' predicts at every position"),
        ([*ORDER[1:], "--set", "training.until=acc=0.9"], "acc"),
        ([*ORDER[1:], "--set", "data.validation=-1"], "validation=-1; it must be a whole number of at least 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_told_in_one_line_before_anything_is_written(words, message, capsys):
    Path("list.yaml").write_text("- task\n")
    Path("flat.yaml").write_text("task: order\nbatch: 3\n")
    Path("broken.yaml").write_text("task: [\n")
    Path("section.yaml").write_text("task: order\nmodel: 3\n")
    Path("null.yaml").write_text("task: order\nsystem: null\n")
    Path("labels.yaml").write_text("task: order\ndata: {labels: 3}\n")
    Path("source.yaml").write_text("task: order\ndata: {source: [1]}\n")
    assert main(["train", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("paramixer: ")
    assert message in error
    assert error.count("\n") == 1
    assert not Path("runs").exists()


@pytest.mark.usefixtures("reviews")
def test_a_file_of_ones_own_gets_the_default_recipe_unless_told_otherwise():
    own = ["train", *STARS, "--set", "model.channels=4", "--set", "model.hidden=4", "--set", "training.steps=1"]
    assert main([*own, "--learning-rate", "0.01", "--out", "default"]) == 0
    settings = RunFolder(Path("default")).read_config()
    assert settings["recipe"] == "default"
    assert settings["training"]["learning_rate"] == 0.01
    assert main(["train", "--resume", "default", "--set", "training.steps=2"]) == 0
    assert RunFolder(Path("default")).read_record()["steps"] == 2
    assert main([*own, "--recipe", "paper", "--out", "paper"]) == 0
    assert RunFolder(Path("paper")).read_config()["recipe"] == "paper"
    assert main([*own, "--model", "transformer", "--out", "baseline"]) == 0
    assert RunFolder(Path("baseline")).read_config()["system"] == "transformer"


def test_resume_goes_on_where_it_was(capsys):
    assert main([*ORDER, "--out", "whole"]) == 0
    assert main([*ORDER, "--set", "training.steps=3", "--out", "parts"]) == 0
    assert main(["train", "--resume", "parts"]) == 2
    assert "parts is finished; give more epochs, steps or minutes" in capsys.readouterr().err
    assert main(["train", "--resume", "parts", "--set", "training.steps=6"]) == 0
    assert Path("whole/model/model.safetensors").read_bytes() == Path("parts/model/model.safetensors").read_bytes()


def test_what_would_be_lost_or_ignored_is_refused(capsys):
    assert main([*ORDER, "--out", "run"]) == 0
    Path("a-file").write_text("")
    for words, message in (
        (["--resume", "run", "--learning-rate", "0.5"], "; remove training.learning_rate (only epochs, steps"),
        (["--resume", "run", "--model", "s4d", "--set", "model.hidden=3"], "; remove system, model.hidden (only"),
        (["--resume", "run", "--out", "other"], "--resume keeps the run's settings; remove --out"),
        ([*ORDER[1:], "--out", "a-file"], "is a file; give a folder"),
        ([*ORDER[1:], "--out", "a-file/deeper/run"], "a-file is a file; give a folder"),
        ([*ORDER[1:], "--out", "run"], "there is a run in run already"),
    ):
        capsys.readouterr()
        assert main(["train", *words]) == 2, words
        assert message in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused_in_one_sentence(capsys):
    for words in (["train", *ORDER[1:], "--out", "gpu"], ["bench", "--quick"]):
        assert main([*words, "--device", "cuda"]) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert "device='cuda': torch" in line
        assert "choose --device cpu, or run it on a GPU" in line
    assert not Path("gpu").exists()


def test_the_processor_can_be_asked_for(capsys):
    assert main([*ORDER, "--device", "cpu", "--out", "run"]) == 0
    assert " on cpu, " in " ".join(capsys.readouterr().out.split())


def test_a_run_on_data_that_has_changed_is_not_evaluated(reviews, capsys):
    assert main(["train", *STARS, *SMALL, *MODEL, "--out", "run"]) == 0
    reviews.write_text(reviews.read_text() + "r99,new,1\n")
    assert main(["evaluate", "run"]) == 2
    assert "the data has changed" in capsys.readouterr().err


def test_a_terminal_is_not_needed_and_ctrl_c_says_how_to_go_on():
    command = [sys.executable, "-m", "paramixer", "train", "order", "--length", "64", "--out", "run"]
    command += ["--set", "training.steps=100000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    while "run folder" not in process.stdout.readline():
        assert process.poll() is None
    metrics = Path("run/metrics.jsonl")
    while not (metrics.exists() and "train" in metrics.read_text()):
        assert process.poll() is None
    process.send_signal(2)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with: paramixer train --resume run" in errors
    assert list(Path("run/state").iterdir())


def test_several_files_and_flags_of_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))
    for part in range(2):
        rows = "".join(f"café {part} {number},{number % 2}\n" for number in range(20))
        (tmp_path / f"part{part}.csv").write_text(f"text,label\n{rows}", encoding="latin-1")
    small = [
        "--encoding",
        "latin-1",
        "--batch",
        "4",
        "--set",
        "training.steps=2",
        "--set",
        "model.channels=4",
        "--set",
        "model.hidden=4",
    ]
    assert main(["train", "part0.csv", "part1.csv"]) == 2
    assert "part0.csv, line 2: not UTF-8" in capsys.readouterr().err
    assert main(["train", "part0.csv", "part1.csv", *small]) == 0
    assert main(["train", "part*.csv", *small]) == 0
    capsys.readouterr()
    for run in ("runs/part0-1", "runs/part-1"):
        monkeypatch.chdir(tmp_path)
        run = Path(run).absolute()
        monkeypatch.chdir("/")
        assert main(["train", "--resume", str(run), "--set", "training.steps=3"]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["train", "part0.csv", "part1.csv", "--source", "part0.csv"]) == 2
    assert "name all files, or one task with --source" in capsys.readouterr().err
    assert main(["data", "prepare", "part0.csv", "part1.csv", "--encoding", "latin-1"]) == 0
