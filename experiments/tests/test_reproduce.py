"""From a name to runs, records and tables; and nothing is run twice."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import typing
from pathlib import Path

import pytest
import torch

import paramixer as pm
from paramixer.cli import main
from experiments import cells, claims, page, published, rank, records, tables, targets
from experiments.cells import CHORD, EXPERIMENTS, Sources, changed, key
from experiments.command import ReproduceOptions
from paramixer.training.command import TrainOptions
from paramixer.training.progress import Silent
from paramixer.training.run_folder import RunFolder
from experiments.tests.small import TINY, cell, kept, swept, times

ROOT = Path(__file__).parents[2]
EVERYWHERE = Sources(*(Path("somewhere"),) * 6)


def test_finished_runs_are_found_and_never_run_twice():
    swept(cell(), cell(options=changed(TINY, {"seed": 1})))
    before = times()
    assert len(before) == 2
    again = swept(cell(), cell(options=changed(TINY, {"seed": 1})))
    assert times() == before
    assert all(told.startswith("done: error") for told in again.states)
    # Nor where the run folders are gone: records are enough.
    Path("runs").rename("gone")
    swept(cell())
    assert times() == before
    assert not Path("runs").exists()


def test_a_grid_is_tried_on_validation_and_the_best_is_run():
    choices = ({"learning_rate": 1e-6}, {"learning_rate": 0.02, "model.hidden": 7})
    options = changed(TINY, {"steps": 40})
    swept(cell(options=options, grid=choices))
    kept = records.read_all(Path("results"))
    trials = [one for one in kept if one.trial]
    assert len(trials) == 2
    assert all(one.options["minutes"] == 2.0 for one in trials)
    assert not any(one.record["test"] for one in trials)
    (final,) = [one for one in kept if not one.trial]
    best = min(trials, key=least_loss)
    assert final.options["learning_rate"] == best.options["learning_rate"]
    assert records.summarised(kept, CHORD, "order 12").seeds == 1
    # The loss decides: where the best choice has no better metric than the other, it is still the one that is run.
    final.path.unlink()
    for one in trials:
        told = json.loads(one.path.read_text())
        told["record"]["validation"] = float(one is best)
        one.path.write_text(json.dumps(told))
    swept(cell(options=options, grid=choices))
    (again,) = [one for one in records.read_all(Path("results")) if not one.trial]
    assert again.key == final.key


def least_loss(one: records.Kept) -> float:
    return min(line["loss"] for line in one.record["epochs"])


def test_an_interrupted_sweep_goes_on_where_it_stopped(monkeypatch):
    whole = swept(cell())
    (path,) = times()
    expected = json.loads(path.read_text())["record"]
    Path("results").rename("first")
    Path("runs").rename("first-runs")
    real = Silent.begin

    def impatient(self, *arguments):
        real(self, *arguments)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Silent, "begin", impatient)
    with pytest.raises(KeyboardInterrupt):
        swept(cell())
    assert not Path("results").exists()
    monkeypatch.setattr(Silent, "begin", real)
    again = swept(cell())
    (path,) = times()
    found = json.loads(path.read_text())["record"]
    assert (found["test"], found["validation"]) == (expected["test"], expected["validation"])
    assert again.states[0].split(",")[0] == whole.states[0].split(",")[0]


def test_what_is_fitted_in_one_go_begins_anew_after_an_interruption():
    options = dataclasses.replace(TINY, steps=None, model={"mixer": "ngrams", "rank": 64})
    swept(cell(options=options))
    (path,) = times()
    path.unlink()
    folder = RunFolder(Path("runs") / key(options, "cpu"))
    record = folder.read_record()
    folder.write_record({**{name: record[name] for name in record if name != "format"}, "finished": False})
    assert swept(cell(options=options)).states[0].startswith("done: error")
    assert list(times()) == [path]


def test_when_the_time_is_up_what_runs_is_saved():
    slow = changed(TINY, {"steps": 1_000_000, "evaluate_every": 500_000})
    sweep = swept(cell(options=slow), cell(), minutes=0.03)
    assert sweep.states == ["interrupted, goes on next time", "waiting"]
    assert list(Path("runs").rglob("state/step-*"))
    assert not times()


def test_records_say_nothing_of_where_data_lies(tmp_path):
    lines = [f"{'ab' * (3 + n % 4)},{n % 2}" for n in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(["text,label", *lines]))
    options = TrainOptions(task="text", source=tmp_path / "own.csv", length=16, steps=2, batch=4, model={"channels": 6})
    swept(cell(options=options))
    (path,) = times()
    assert str(tmp_path) not in path.read_text()
    assert key(options, "cpu") == key(dataclasses.replace(options, source=Path("other.csv")), "cpu")
    record = json.loads(path.read_text())["record"]
    assert 0.3 < record["majority"] < 0.8


@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_is_a_run_of_its_own(name, scale):
    found = list(EXPERIMENTS[name](scale, EVERYWHERE))
    assert found
    places = [(one.row, one.column, one.options.seed) for one in found]
    assert len(set(places)) == len(places)
    for one in found:
        keys = [key(options, scale) for options in (*one.trials(), *(one.final(choice) for choice in one.grid))]
        assert len(set(keys)) == len(keys)
        if scale == "cpu" and one.options.model.get("mixer") != "ngrams":
            assert one.options.minutes is not None
        if scale == "paper":
            assert one.options.minutes is None
            assert one.options.learning_rate is None


def test_shards_share_all_cells_between_them():
    whole = ReproduceOptions("figure-synthetic", "cpu").cells()
    parts = [ReproduceOptions("figure-synthetic", "cpu", shard=f"{n}/3").cells() for n in (1, 2, 3)]
    assert sorted(one.row + one.column for part in parts for one in part) == sorted(
        one.row + one.column for one in whole
    )
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for wrong in ("0/2", "3/2", "a", "1"):
        with pytest.raises(ValueError, match="shard="):
            ReproduceOptions("figure-synthetic", shard=wrong)


def test_smoke_runs_a_figure_to_its_table(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["reproduce", "figure-synthetic", "--only", "Paramixer", "--docs", "docs"]) == 0
    text = capsys.readouterr().out
    assert "Adding, error on test" in text
    assert "done: error" in text
    # Smoke teaches nothing and stands on no page.
    assert "Synthetic tasks" not in Path("docs/results.md").read_text()


def test_singular_values_that_cannot_be_measured_anew_are_no_silent_matter(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["reproduce", "figure-rank"]) == 0
    assert "not measured anew" not in capsys.readouterr().out
    before = times()
    Path("runs").rename("gone")
    assert main(["reproduce", "figure-rank"]) == 0
    assert "singular values are not measured anew" in capsys.readouterr().out
    assert times() == before


@pytest.mark.parametrize("name", ["figure-synthetic", "table-lra", "table-genome", "figure-rank"])
def test_rivals_start_as_paramixer_does(name):
    """But for what belongs to links; where there is a grid, it is one of its choices."""
    every = list(EXPERIMENTS[name]("cpu", EVERYWHERE))
    own = {one.column: one.options for one in every if one.row in (CHORD, cells.CDIL)}
    rivals = [one for one in every if (mixer := one.options.model.get("mixer")) and mixer != "ngrams"]
    assert rivals
    for rival in rivals:
        starts = [rival.final(choice) for choice in rival.grid]
        ours = own[rival.column]
        shared = [
            (start.learning_rate, start.head_rate, start.clip, start.model.get("init"), start.settle, start.link_rate)
            for start in starts
        ]
        assert (ours.learning_rate, ours.head_rate, ours.clip, ours.model.get("init"), None, None) in shared


@pytest.mark.slow
def test_smoke_runs_everything(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["reproduce", "all"]) == 0
    text = capsys.readouterr().out
    assert "waiting" not in text
    for said in ("table-lra, on test", "table-genome, on test", "table-documents, on test", "always the largest class"):
        assert said in text
    assert Path("results/smoke/figure-rank/singular-values.json").is_file()
    for picture in ("links.svg", "network.svg", "examples.png"):
        assert Path("results/smoke/figures", picture).is_file()
    assert len(list(Path("results/smoke/figure-lengths").iterdir())) == 3


def test_seeds_give_mean_and_deviation():
    found = records.summarised([kept("a", "b", value) for value in (0.1, 0.2, 0.3)], "a", "b")
    assert found.percent() == "20.00 ± 10.00"
    assert records.summarised([kept("a", "b", 0.5)], "a", "b").percent() == "50.00"
    assert records.summarised([kept("a", "b", 0.5, trial=True)], "a", "b") is None


def test_scales_are_not_mixed():
    both = [kept(CHORD, "order 128", 0.5), kept(CHORD, "order 128", 0.1, scale="paper")]
    assert records.summarised(both, CHORD, "order 128").percent() == "10.00"
    assert records.summarised(both[:1], CHORD, "order 128").percent() == "50.00"
    assert dict(claims.all_claims(Path("results"), both))["0 % error on Temporal Order for every N to 8 192"] == (
        claims.Finding("contradicted", "10.00 % at 128", "paper")
    )
    told = dict(claims.all_claims(Path("results"), both[:1]))["0 % error on Temporal Order for every N to 8 192"]
    assert (told.verdict, told.scale) == ("cannot tell yet", "cpu")
    assert told.measured.startswith("50.00 % at 128; not run at 256, ")


def test_the_papers_numbers_stand_beside_ours():
    (table,) = paper_tables.synthetic([kept(CHORD, "adding 1024", 0.0), kept("Linformer", "adding 1024", 0.25)])
    assert table.rows == [
        [CHORD, "0.00 % (10 steps, 60 s; paper: 0 %)"],
        ["Linformer", "25.00 % (10 steps, 60 s; paper: 33.38 %)"],
    ]
    assert table.title == "Adding, error on test, scale cpu"
    assert published.table()["Paramixer CDIL"]["image"] == "46.58 ± 0.05"
    assert "image" not in published.table()["Transformer-LS"]
    assert published.table()["Transformer-LS"]["documents-16k"] == "70.25"
    assert published.error_cell("adding", "Transformer", 2048) == "fails"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({}, "cannot tell yet"),
        ({2**power: 0.0 for power in range(7, 16)}, "supported"),
        ({128: 0.0, 256: 0.0}, "cannot tell yet"),
        ({128: 0.0, 32768: 0.3}, "cannot tell yet"),
        # A longer one does not stand for the shorter ones.
        ({32768: 0.0}, "cannot tell yet"),
    ],
)
def test_the_claim_of_no_error(values, verdict):
    found = claims.synthetic_zero([kept(CHORD, f"adding {n}", value) for n, value in values.items()], "adding", 32768)
    assert found.verdict == verdict


def test_a_rival_fails_only_after_as_many_steps_as_paramixer_took():
    names, own = ("Linformer", "Reformer"), kept(CHORD, "adding 2048", 0.0)
    poor, good = ([kept(name, "adding 2048", error) for name in names] for error in (0.8, 0.0))
    hurried = [*poor[:1], kept(names[1], "adding 2048", 0.8, record={**own.record, "test": {"error": 0.8}, "steps": 9})]
    assert claims.rivals_fail([own, *poor], names, 2048).verdict == "supported"
    assert claims.rivals_fail([own, *hurried], names, 2048).verdict == "cannot tell yet"
    assert claims.rivals_fail([own, *good], names, 2048).verdict == "contradicted"
    # Who has not learned it either proves nothing about others.
    assert claims.rivals_fail([kept(CHORD, "adding 2048", 0.5), *poor], names, 2048).verdict == "cannot tell yet"
    for missing in ([], poor, [own, *poor[:1]]):
        assert claims.rivals_fail(missing, names, 2048).verdict == "cannot tell yet"


def test_other_claims_follow_their_records():
    rows = ("links from X0", "links from the block's input")
    for errors, verdict in {
        (0.0, 0.1): "supported",
        (0.1, 0.0): "contradicted",
        (0.0, 0.0): "cannot tell yet",
        # Two sequences of 5000.
        (0.0, 0.0004): "cannot tell yet",
    }.items():
        both = [kept(row, "adding 1024", value) for row, value in zip(rows, errors, strict=True)]
        assert claims.links_from_first(both).verdict == verdict
    lra = [kept(row, task, value) for task in ("text", "image") for row, value in ((CHORD, 0.5), ("Performer", 0.4))]
    assert claims.best_on_lra(lra).verdict == "cannot tell yet"
    assert claims.best_on_lra([*lra, kept("S4D", "image", 0.9)]).verdict == "contradicted"
    aside = [kept(row, "text", 0.9) for row in ("n-gram counts + logistic regression", cells.AS_DRAWN)]
    assert claims.best_on_lra([*lra, *aside]).verdict == "cannot tell yet"
    some = [*lra, kept(CHORD, "pathfinder", 0.7), kept("Performer", "pathfinder", 0.5)]
    few = claims.best_on_lra([*some, kept(CHORD, "listops", 0.4), kept("Nystromformer", "listops", 0.3)])
    assert few.verdict == "cannot tell yet"
    assert few.measured.endswith("4 of 40 rivals of the paper's table were run")
    run = {(one.row, one.column) for one in some} | {("Nystromformer", "listops")}
    tasks = ("listops", "text", "image", "pathfinder")
    theirs = {(row, task) for row, known in published.table().items() for task in tasks if task in known} - run
    every = [*some, *(kept(row, task, 0.2) for row, task in theirs if not row.startswith("Paramixer"))]
    verdicts = {0.3: "supported", 0.38: "cannot tell yet", 0.5: "contradicted", float("nan"): "supported"}
    for rival, verdict in verdicts.items():
        listops = [kept(CHORD, "listops", 0.4), kept("Nystromformer", "listops", rival)]
        assert claims.best_on_lra([*every, *listops]).verdict == verdict
    diverged = [kept(CHORD, "listops", float("nan")), kept("Nystromformer", "listops", 0.3)]
    assert claims.best_on_lra([*every, *diverged]).verdict == "contradicted"
    for longer, verdict in {0.6: "supported", 0.54: "cannot tell yet", 0.4: "contradicted"}.items():
        documents = [kept(CHORD, f"documents-{size}", value) for size, value in (("16k", 0.5), ("32k", longer))]
        assert claims.longer_documents(documents).verdict == verdict


def test_targets_are_reached_or_missed_by_so_much():
    def own(row: str, value: float, trial: bool = False, **options: object) -> records.Kept:
        epochs = [{"step": 1, "seconds": 10, "accuracy": 0.3}, {"step": 2, "seconds": 60, "accuracy": value}]
        record = {"metric": "accuracy", "test": {"accuracy": value}, "validation": value, "steps": 2, "seconds": 60.0}
        record |= {"epochs": epochs, "majority": 0.25}
        return kept(row, "image", value, "table-lra", record=record, trial=trial, options=options)

    some = [own(CHORD, 0.40), own(cells.CDIL, 0.44), own("Transformer", 0.9), own(CHORD, 0.2, True, learning_rate=0.1)]
    rows = {row[0]: row for row in targets.table(some).rows}
    assert rows["text"][3] == "not run"
    assert rows["documents-16k"][1] == "10 % over the largest class"
    assert rows["image"][1:] == [
        "accuracy >= 45.00 %",
        "44.00 % (Paramixer CDIL, 1 minute)",
        "missed by 1.00 points",
        "CHORD learning_rate 0.1: 20.0 %",
        "validation went from 30.00 to 44.00 %",
    ]
    assert {row[0]: row for row in targets.table([own(cells.CDIL, 0.45)]).rows}["image"][3] == "yes"
    aside = dataclasses.replace(own(cells.CDIL, 0.45), experiment="figure-rank")
    assert {row[0]: row for row in targets.table([aside]).rows}["image"][3] == "not run"
    documents = dataclasses.replace(own(CHORD, 0.36), column="documents-16k")
    assert {row[0]: row for row in targets.table([documents]).rows}["documents-16k"][3] == "yes"
    assert targets.learning(own(CHORD, 0.3).record) == "no better"


def test_every_record_is_of_a_run_that_is_still_asked_for():
    anywhere = Sources(image=ROOT, text=ROOT, documents=ROOT, genome=ROOT)
    every = [cell for made in EXPERIMENTS.values() for scale in ("cpu", "paper") for cell in made(scale, anywhere)]
    runs = [(cell, run) for cell in every for run in (*cell.trials(), *map(cell.final, cell.grid))]
    known = {records.path_of(ROOT / "results", cell, run) for cell, run in runs}
    kept_there = [one.path for one in records.read_all(ROOT / "results")]
    assert kept_there
    assert set(kept_there) <= known


def test_the_page_is_what_the_records_make(tmp_path):
    written = (ROOT / "docs" / "results.md").read_text()
    assert page.page(ROOT / "results", tmp_path) == written
    pictures = re.findall(r"]\((results/[^)]*)\)", written)
    assert len(pictures) >= 5
    assert all((ROOT / "docs" / picture).is_file() for picture in pictures)
    for drawn in tmp_path.iterdir():
        assert drawn.read_text() == (ROOT / "docs" / "results" / drawn.name).read_text()


def test_a_table_without_its_data_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.delenv("PARAMIXER_DATA", raising=False)
    assert main(["reproduce", "table-genome", "--scale", "cpu"]) == 2
    assert "is its data there" in capsys.readouterr().err


def test_every_experiment_can_be_asked_for():
    names = typing.get_args(typing.get_type_hints(ReproduceOptions)["name"])
    assert set(names) == {
        *EXPERIMENTS,
        "figure-lengths",
        "figure-protocols",
        "figure-network",
        "figure-examples",
        "page",
        "all",
    }
    assert cells.changed(TINY, {"model.hidden": 3, "seed": 4}).model == {"channels": 6, "hidden": 3}


def test_a_smoke_run_supports_no_claim(tmp_path):
    (tmp_path / "figure-rank").mkdir()
    own = {"rank": 9, "length": 9, "above_a_thousandth": 4}
    rival = {"rank": 9, "length": 9, "above_a_thousandth": 9, "rank_of_logits": 3, "error": 0.8, "channels": 3}
    document = {"scale": "smoke", "models": {CHORD: own, "Transformer": rival}}
    path = tmp_path / "figure-rank" / "singular-values.json"
    path.write_text(json.dumps(document))
    assert claims.full_rank(tmp_path).verdict == claims.bottleneck(tmp_path).verdict == "cannot tell yet"
    path.write_text(json.dumps(document | {"scale": "cpu"}))
    assert claims.full_rank(tmp_path).verdict == "supported"
    assert claims.bottleneck(tmp_path).verdict == "contradicted"
    document["models"]["Transformer"]["above_a_thousandth"] = 2
    path.write_text(json.dumps(document | {"scale": "cpu"}))
    assert claims.bottleneck(tmp_path).verdict == "cannot tell yet"
    document["models"]["Transformer"]["rank"] = 3
    path.write_text(json.dumps(document | {"scale": "cpu"}))
    assert claims.bottleneck(tmp_path).verdict == "supported"


def test_logits_are_those_of_the_attention():
    config = pm.ParamixerConfig(length=6, vocabulary=5, outputs=2, channels=4, hidden=4, mixer="transformer")
    model = pm.Paramixer(config).double().eval()
    tokens = torch.arange(6)[None] % 5
    found = rank.logits(model, tokens)
    torch.testing.assert_close((found / 2).softmax(-1), rank.matrix(model, tokens))


def test_the_papers_genomes_are_run_as_the_paper_did():
    found = {(one.row, one.column): one.options for one in EXPERIMENTS["table-genome"]("paper", EVERYWHERE)}
    assert {column for _, column in found} == {"hfdna", "mtcdna"}
    assert found[CHORD, "mtcdna"].task == "mtcdna"
    deep = [place for place, options in found.items() if options.model.get("blocks") == 4]
    assert sorted(deep) == [("Transformer", "hfdna"), ("Transformer-LS", "mtcdna")]
    # Two blocks are Paramixer's own.
    assert found["Transformer", "mtcdna"].model["blocks"] == 1
