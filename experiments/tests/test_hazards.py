"""What a sweep and its page meet in real life: damaged files, failing cells, diverged runs, copies, wrong words."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from paramixer.cli import main
from experiments import page, records, sweep, tables, targets
from experiments.cells import CHORD, changed
from experiments.command import ReproduceOptions
from experiments.tests.small import TINY, cell, kept, swept, times


def test_a_cell_that_fails_does_not_stop_the_others(monkeypatch):
    real = sweep.train

    def failing(options, *rest, **named):
        if options.seed == 0:
            raise RuntimeError("out of memory")
        return real(options, *rest, **named)

    monkeypatch.setattr(sweep, "train", failing)
    found = swept(cell(), cell(options=changed(TINY, {"seed": 1})))
    assert found.states[0] == "failed: out of memory"
    assert found.states[1].startswith("done")
    assert found.failed == [f"{CHORD} order 12: out of memory"]
    monkeypatch.setattr(sweep, "train", real)
    assert swept(cell()).states[0].startswith("done")


def test_failed_cells_are_told_at_the_end(capsys, monkeypatch):
    def failing(*arguments, **named):
        raise ImportError("no package for it")

    monkeypatch.setattr(sweep, "train", failing)
    assert main(["reproduce", "figure-synthetic", "--only", "paramixer chord"]) == 2
    assert "2 of 2 cells failed: Paramixer CHORD adding 32: no package for it" in capsys.readouterr().err


def test_a_grid_passes_over_what_diverged():
    choices = ({"learning_rate": 1e-6}, {"learning_rate": 0.02})
    swept(cell(grid=choices))
    for path in times():
        told = json.loads(path.read_text())
        if not told["trial"]:
            path.unlink()
        else:
            worst = told["options"]["learning_rate"] == 1e-6
            told["record"]["epochs"] = [{"loss": math.nan if worst else 9.0}]
            path.write_text(json.dumps(told))
    swept(cell(grid=choices))
    (final,) = [one for one in records.read_all(Path("results")) if not one.trial]
    assert final.options["learning_rate"] == 0.02


def test_what_diverged_is_not_what_was_not_run():
    one = kept(CHORD, "adding 128", math.nan)
    (table,) = paper_tables.synthetic([one])
    assert table.rows == [[CHORD, "diverged (10 steps, 60 s; paper: 0 %)"]]
    both = records.summarised([one, kept(CHORD, "adding 128", 0.25)], CHORD, "adding 128")
    assert both.percent() == "25.00, 1 of 2 diverged"
    assert {row[0]: row[3] for row in targets.table([one]).rows}["adding 128"] == "diverged"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON"),
        ('{"format": 1, "rec', "is no JSON"),
        ("[1, 2]", "holds no record"),
        ('{"format": 1, "record": {}}', "is a damaged record"),
    ],
)
def test_a_damaged_record_is_named(capsys, text, said):
    path = Path("results/table-lra/one.json")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert main(["reproduce", "page", "--docs", "docs"]) == 2
    error = capsys.readouterr().err
    assert str(path) in error
    assert said in error


@pytest.mark.parametrize(
    ("field", "value"), [("scale", "huge"), ("record", {"test": {"error": None}, "metric": "error"})]
)
def test_a_record_of_nonsense_is_named(capsys, field, value):
    swept(cell())
    (path,) = times()
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    assert main(["reproduce", "page", "--docs", "docs"]) == 2
    assert f"{path} is a damaged record" in capsys.readouterr().err


def test_copies_of_a_record_are_one_seed():
    swept(cell())
    (path,) = times()
    path.with_name("copy.json").write_bytes(path.read_bytes())
    assert records.summarised(records.read_all(Path("results")), CHORD, "order 12").seeds == 1


def test_smoke_leaves_what_was_measured_alone():
    for name in ("figure-lengths/text.json", "figure-rank/singular-values.json"):
        path = Path("results", name)
        path.parent.mkdir(parents=True)
        path.write_text("measured")
    assert main(["reproduce", "figure-lengths"]) == 0
    assert main(["reproduce", "figure-rank"]) == 0
    assert Path("results/figure-lengths/text.json").read_text() == "measured"
    assert Path("results/figure-rank/singular-values.json").read_text() == "measured"
    assert Path("results/smoke/figure-rank/singular-values.json").is_file()


def test_smoke_leaves_pictures_of_the_data_alone():
    measured = Path("docs/results/lengths-text.svg")
    measured.parent.mkdir(parents=True)
    measured.write_text("measured")
    assert main(["reproduce", "figure-lengths", "--docs", "docs"]) == 0
    assert measured.read_text() == "measured"
    assert Path("results/smoke/figures/lengths-text.svg").is_file()


def test_singular_values_want_all_models(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["reproduce", "figure-rank", "--shard", "1/2"]) == 0
    assert "does not hold all models" in capsys.readouterr().out
    assert not Path("results/smoke/figure-rank/singular-values.json").exists()
    assert main(["reproduce", "figure-rank", "--shard", "2/2"]) == 0
    assert Path("results/smoke/figure-rank/singular-values.json").is_file()


def test_more_seeds_are_more_runs_of_every_cell():
    one, three = (ReproduceOptions("figure-rank", "cpu", seeds=count).cells() for count in (1, 3))
    assert [cell.options.seed for cell in one] == [0, 0]
    assert [cell.options.seed for cell in three] == [0, 0, 1, 1, 2, 2]
    assert three[:2] == ReproduceOptions("figure-rank", "cpu").cells()


def test_wrong_words_are_told(capsys):
    for words, said in {
        ("page",): "--docs docs",
        ("page", "--docs", "docs", "--results", "nowhere"): "nowhere is no folder",
        ("table-genome", "--scale", "cpu", "--genome", "nowhere"): "--genome nowhere does not exist",
        ("figure-rank", "--only", "xyz"): "there are Paramixer CHORD adding 32, Transformer adding 32",
        ("figure-rank", "--seeds", "0"): "seeds=0",
        ("figure-rank", "--minutes", "0"): "minutes=0",
    }.items():
        assert main(["reproduce", *words]) == 2
        assert said in " ".join(capsys.readouterr().err.split())


def test_cells_without_data_are_named(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.delenv("PARAMIXER_DATA", raising=False)
    assert main(["reproduce", "figure-lengths", "--scale", "cpu"]) == 0
    assert "left out for want of data: text, documents, genome" in capsys.readouterr().out


def test_notes_and_former_runs_stand_on_the_page(tmp_path):
    swept(cell())
    (path,) = times()
    former = Path("results", records.SUPERSEDED, "x", path.name)
    former.parent.mkdir(parents=True)
    path.rename(former)
    # Of a recipe that changed twice without its settings there are two runs of one key.
    again = json.loads(former.read_text())
    again["record"]["steps"] = 77777
    former.with_name("before.json").write_text(json.dumps(again))
    Path("results/notes.md").write_text("What people should know.\n")
    text = page.page(Path("results"), tmp_path)
    assert "What people should know." in text
    assert "Runs of former recipes" in text
    assert text.count(f"| {again['row']} | {again['column']} |") == 2
    assert "| 77777 |" in text
    assert "Synthetic tasks" not in text
