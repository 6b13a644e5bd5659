"""``python -m experiments`` from its words to tables and files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from experiments import records, sweep
from experiments.__main__ import main
from experiments.cells import CHORD
from experiments.page import paper_tables, targets
from experiments.tests.small import list_times, make_run


def test_failed_cells_are_listed_at_the_end(capsys, monkeypatch):
    def fail(*arguments, **named):
        raise ImportError("no package for it")

    monkeypatch.setattr(sweep, "start_run", fail)
    assert main(["figure-synthetic", "--only", "paramixer chord"]) == 2
    assert "2 of 2 cells failed: Paramixer CHORD adding 32: no package for it" in capsys.readouterr().err


def test_diverged_differs_from_not_run():
    run = make_run(CHORD, "adding 128", math.nan)
    (table,) = paper_tables.tabulate_synthetic([run])
    assert table.rows == [[CHORD, "diverged (10 steps, 60 s; paper: 0 %)"]]
    both = records.summarize([run, make_run(CHORD, "adding 128", 0.25)], CHORD, "adding 128")
    assert both.percent() == "25.00, 1 of 2 diverged"
    assert {row[0]: row[3] for row in targets.tabulate_targets([run]).rows}["adding 128"] == "diverged"


def test_smoke_leaves_measured_records_alone():
    for name in ("figure-lengths/text.json", "figure-rank/singular-values.json"):
        path = Path("results", name)
        path.parent.mkdir(parents=True)
        path.write_text("measured")
    assert main(["figure-lengths"]) == 0
    assert main(["figure-rank"]) == 0
    assert Path("results/figure-lengths/text.json").read_text() == "measured"
    assert Path("results/figure-rank/singular-values.json").read_text() == "measured"
    assert Path("results/smoke/figure-rank/singular-values.json").is_file()


def test_smoke_leaves_pictures_of_the_data_alone():
    measured = Path("docs/results/lengths-text.svg")
    measured.parent.mkdir(parents=True)
    measured.write_text("measured")
    assert main(["figure-lengths", "--docs", "docs"]) == 0
    assert measured.read_text() == "measured"
    assert Path("results/smoke/figures/lengths-text.svg").is_file()


def test_singular_values_need_all_models(capsys):
    assert main(["figure-rank", "--shard", "1/2"]) == 0
    assert "does not hold all models" in capsys.readouterr().out
    assert not Path("results/smoke/figure-rank/singular-values.json").exists()
    assert main(["figure-rank", "--shard", "2/2"]) == 0
    assert Path("results/smoke/figure-rank/singular-values.json").is_file()


def test_singular_values_that_cannot_be_measured_again_are_mentioned(capsys):
    assert main(["figure-rank"]) == 0
    assert "not measured again" not in capsys.readouterr().out
    before = list_times()
    Path("runs").rename("gone")
    assert main(["figure-rank"]) == 0
    assert "singular values are not measured again" in capsys.readouterr().out
    assert list_times() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["page"], "--docs docs"),
        (["page", "--docs", "docs", "--results", "nowhere"], "nowhere is no folder"),
        (["table-genome", "--scale", "cpu", "--genome", "nowhere"], "--genome nowhere does not exist"),
        (["figure-rank", "--only", "xyz"], "there are Paramixer CHORD adding 32, Transformer adding 32"),
        (["figure-rank", "--seeds", "0"], "seeds=0"),
        (["figure-rank", "--minutes", "0"], "minutes=0"),
        (["figure-rank", "--minuets", "3"], "--minuets"),
        (["figure-synth"], "figure-synth"),
        ([], "NAME"),
    ],
    ids=" ".join,
)
def test_mistakes_are_told_in_one_line(words, message, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("experiments: ")
    assert error.count("\n") == 1
    assert message in error


def test_missing_data_is_named(capsys, monkeypatch):
    monkeypatch.delenv("PARAMIXER_DATA", raising=False)
    assert main(["figure-lengths", "--scale", "cpu"]) == 0
    assert "left out for lack of data: text, documents, genome" in capsys.readouterr().out
    assert main(["table-genome", "--scale", "cpu"]) == 2
    assert "is its data there" in capsys.readouterr().err


def test_a_drawing_needs_no_records():
    assert main(["figure-protocols", "--docs", "docs"]) == 0
    assert Path("docs/figures/links.svg").is_file()
    assert not Path("docs/results.md").exists()


def test_smoke_runs_a_figure_to_its_table(capsys):
    assert main(["figure-synthetic", "--only", "Paramixer", "--docs", "docs"]) == 0
    text = capsys.readouterr().out
    assert "Adding, error on test" in text
    assert "done: error" in text
    # Nothing of smoke is on the page.
    assert "Synthetic tasks" not in Path("docs/results.md").read_text()


@pytest.mark.slow
def test_smoke_runs_everything(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["all"]) == 0
    text = capsys.readouterr().out
    assert "waiting" not in text
    words = " ".join(text.split())
    for title in ("table-lra, on test", "table-genome, on test", "table-documents, on test", "table-default, on test"):
        assert title in words
    tables = [line for line in text.splitlines() if not line.startswith(("written", "drawn")) and ".json)" not in line]
    assert max(map(len, tables)) <= 80
    assert Path("results/smoke/figure-rank/singular-values.json").is_file()
    for picture in ("travel.svg", "links.svg", "network.svg", "pathfinder.png", "examples.png"):
        assert Path("results/smoke/figures", picture).is_file()
    assert len(list(Path("results/smoke/figure-lengths").iterdir())) == 3
