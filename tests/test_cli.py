from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys

import pytest

import paramixer
from bench import samples
from paramixer import cli
from paramixer.bench import record
from paramixer.cli import main, parse

LEAVES = [
    ["cost"],
    *([word] for word in ("train", "evaluate", "predict", "explain", "report", "models", "reproduce")),
    *(["bench", word] for word in ("block", "scaling", "memory", "step", "training", "models", "figures", "show")),
    *(["data", word] for word in ("list", "prepare")),
]


def test_the_commands_are_these():
    runs = {"train", "evaluate", "predict", "explain", "report"}
    assert set(cli.COMMANDS) == {"bench", "cost", "data", "models", "reproduce", *runs}
    assert set(cli.COMMANDS["data"]) == {"list", "prepare"}
    assert set(cli.COMMANDS["bench"]) == {"block", "scaling", "memory", "step", "training", "models", "figures", "show"}


@pytest.mark.parametrize("words", [[], ["bench"], ["data"], *LEAVES], ids=" ".join)
def test_every_command_explains_itself(words, capsys):
    assert main([*words, "--help"]) == 0
    text = capsys.readouterr().out
    assert "usage: paramixer" in text
    assert "Unvalidated" not in text


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_flag_is_documented(words, capsys):
    main([*words, "--help"])
    flags = " ".join(capsys.readouterr().out.split("options:")[1].split())
    for kind in re.finditer(r"\((required, )?type: ", flags):
        assert flags[: kind.start()].endswith((". ", "updated. ")), flags[kind.start() - 60 : kind.start()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "command"),
        (["bench"], "block,scaling,memory"),
        (["fly"], "fly"),
        (["bench", "block", "--lenth", "3"], "--lenth"),
        (["bench", "block", "--batch", "0"], "batch=0; it must be at least 1"),
        (["bench", "block", "--length", "many"], "length"),
        (["bench", "block", "--ways=[rools]"], "there is no way 'rools'; choose from paramixer, rolls"),
        (["bench", "step", "--presets=[imge]"], "did you mean 'image'"),
        (["bench", "show", "nowhere.json"], "there is no record nowhere.json"),
        (["cost", "--protocol", "ring"], "ring"),
        (["cost", "--keep", "0"], "keep=0; it must be positive"),
        (["cost", "--engine", "abacus"], "no cost model for engine 'abacus'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_told_in_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("paramixer: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_an_engine_that_cannot_serve_is_told_in_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PARAMIXER_BACKEND", "triton")
    assert main(["bench", "block", "--quick", "--out", str(tmp_path)]) == 2
    assert "backend 'triton' cannot serve" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_interrupting_leaves_cleanly(monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "cost", cli.Command(cli.CostOptions, interrupt))
    assert main(["cost"]) == 130
    assert capsys.readouterr().err == "paramixer: interrupted\n"


def test_a_bug_of_ours_keeps_its_traceback(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setitem(cli.COMMANDS, "cost", cli.Command(cli.CostOptions, fail))
    with pytest.raises(ZeroDivisionError):
        main(["cost"])


def test_cost_prints_operations_time_and_memory(capsys):
    assert main(["cost", "--length", "1024", "--batch", "1", "--engine", "cpu", "--gflops", "100"]) == 0
    text = capsys.readouterr().out
    # 10 factors, 11 links: 1024 x 10 x 2 x (32 x 32 + 32 x 11 + 11 x 32)
    assert "3.539e+07" in text
    assert "100 GFLOP/s" in text
    assert "predicted peak memory" in text


def test_block_verifies_times_and_writes_record_and_plot(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    ways = "--ways=[rolls,gather,scatter,softmax]"
    assert main(["bench", "block", "--quick", ways, "--threads", "1", "--out", str(tmp_path)]) == 0
    assert "gather-scatter" in capsys.readouterr().out
    document = json.loads((tmp_path / "block-quick.json").read_text())
    assert document["machine"]["threads"] == 1
    assert document["settings"]["quick"] is True
    assert (tmp_path / "block-quick.svg").exists()
    assert main(["bench", "show", str(tmp_path / "block-quick.json")]) == 0
    assert "A quick run" in capsys.readouterr().out


def test_show_updates_a_page(tmp_path, capsys):
    from paramixer.bench import record

    path = record.write(samples.record("figures", samples.FIGURES), tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- bench figures -->\n<!-- end -->\n")
    assert main(["bench", "show", str(path), "--into", str(page)]) == 0
    assert "| against rolls | at least 5x | 6.12x | yes |" in page.read_text()


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "paramixer", "cost", "--length", "1"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("paramixer: length 1 leaves nothing to link")
    assert "Traceback" not in done.stderr


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.split() == ["paramixer", paramixer.__version__]


def test_a_quick_or_partial_record_takes_no_place(tmp_path):
    for settings, name in (
        ({}, "models.json"),
        ({"quick": True}, "models-quick.json"),
        ({"models": ["s4d"]}, "models-some.json"),
    ):
        made = dataclasses.replace(samples.record("models", samples.MODELS), settings=settings)
        assert record.write(made, tmp_path).name == name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "order", "--steps", "abc"], "steps=abc; it must be a whole number"),
        (
            ["train", "order", "--match", "params"],
            "match=params; it must be one of parameters (did you mean parameters?)",
        ),
        (["bench", "models", "--models", "linear"], "models=linear; it must be a list such as [a,b]"),
        (["reproduce", "figure-synth"], "did you mean figure-synthetic?"),
    ],
)
def test_wrong_values_are_told_in_plain_words(words, message, capsys):
    assert cli.main(words) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "class '" not in told


def test_what_is_said_counts_more_than_a_file_wherever_it_stands(tmp_path):
    (tmp_path / "c.yaml").write_text("task: adding\nsteps: 7\nlength: 9\n")
    for words in (["order", "--steps", "3", "--config", "c.yaml"], ["--config=c.yaml", "order", "--steps", "3"]):
        found = cli.parse(["train", *[word.replace("c.yaml", str(tmp_path / "c.yaml")) for word in words]])["train"]
        assert (found["task"], found["steps"], found["length"]) == ("order", 3, 9)


@pytest.mark.parametrize(("words", "said"), [([], None), (["--settle"], True), (["--settle", "false"], False)])
def test_a_flag_alone_means_yes_and_no_flag_means_neither(words, said):
    assert parse(["train", "adding", *words]).train.settle is said
