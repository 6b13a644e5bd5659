"""Tables, claims and targets follow their records."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from experiments import rank, records
from experiments.cells import CDIL, CHORD, PAPER_INIT
from experiments.page import claims, paper_tables, published, targets
from experiments.tests.small import make_run
from paramixer.baselines import registry
from paramixer.baselines.config import BaselineConfig


def test_scales_are_not_mixed():
    both = [make_run(CHORD, "order 128", 0.5), make_run(CHORD, "order 128", 0.1, scale="paper")]
    assert records.summarize(both, CHORD, "order 128").percent() == "10.00"
    assert records.summarize(both[:1], CHORD, "order 128").percent() == "50.00"
    assert dict(claims.check_claims(Path("results"), both))["0 % error on Temporal Order for every N to 8 192"] == (
        claims.Finding("contradicted", "10.00 % (9.20 to 10.86) at 128", "paper")
    )
    finding = dict(claims.check_claims(Path("results"), both[:1]))["0 % error on Temporal Order for every N to 8 192"]
    assert (finding.verdict, finding.scale) == ("open", "cpu")
    assert finding.measured.startswith("50.00 % (48.61 to 51.39) at 128; not run at 256, ")


def test_the_papers_numbers_stand_beside_ours():
    (table,) = paper_tables.tabulate_synthetic(
        [make_run(CHORD, "adding 1024", 0.0), make_run("Linformer", "adding 1024", 0.25)]
    )
    assert table.rows == [
        [CHORD, "0.00 % (10 steps, 60 s; paper: 0 %)"],
        ["Linformer", "25.00 % (10 steps, 60 s; paper: 33.38 %)"],
    ]
    assert table.title == "Adding, error on test, scale cpu"
    assert published.read_table()["Paramixer CDIL"]["image"] == "46.58 ± 0.05"
    assert "image" not in published.read_table()["Transformer-LS"]
    assert published.read_table()["Transformer-LS"]["documents-16k"] == "70.25"
    assert published.format_error("adding", "Transformer", 2048) == "fails"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({}, "open"),
        ({2**power: 0.0 for power in range(7, 16)}, "supported"),
        ({128: 0.0, 256: 0.0}, "open"),
        ({128: 0.0, 32768: 0.3}, "open"),
        # A longer one does not stand for the shorter ones.
        ({32768: 0.0}, "open"),
    ],
)
def test_the_claim_of_no_error(values, verdict):
    result = claims.check_no_error(
        [make_run(CHORD, f"adding {n}", value) for n, value in values.items()], "adding", 32768
    )
    assert result.verdict == verdict


def test_a_baseline_fails_only_after_as_many_steps_as_paramixer_took():
    names, paramixer = ("Linformer", "Reformer"), make_run(CHORD, "adding 2048", 0.0)
    poor, good = ([make_run(name, "adding 2048", error) for name in names] for error in (0.8, 0.0))
    hurried = [
        *poor[:1],
        make_run(names[1], "adding 2048", 0.8, record={**paramixer.record, "test": {"error": 0.8}, "steps": 9}),
    ]
    assert claims.check_baselines_fail([paramixer, *poor], names, 2048).verdict == "supported"
    assert claims.check_baselines_fail([paramixer, *hurried], names, 2048).verdict == "open"
    assert claims.check_baselines_fail([paramixer, *good], names, 2048).verdict == "contradicted"
    # Who has not learned it either proves nothing about others.
    assert claims.check_baselines_fail([make_run(CHORD, "adding 2048", 0.5), *poor], names, 2048).verdict == "open"
    for missing in ([], poor, [paramixer, *poor[:1]]):
        assert claims.check_baselines_fail(missing, names, 2048).verdict == "open"


def make_lra(row: str, task: str, value: float) -> records.StoredRun:
    return make_run(row, task, value, "table-lra")


def test_the_runs_of_equal_minutes_judge_who_is_best():
    longer = [make_lra(CHORD, "text", 0.9), make_lra("Performer", "text", 0.4)]
    equal = [make_run(row, "text", value, "table-systems") for row, value in ((CHORD, 0.5), ("Performer", 0.6))]
    assert claims.check_best_on_lra(longer).verdict == "open"
    # Without a baseline of equal minutes there is nothing to compare.
    assert claims.check_best_on_lra([*longer, equal[0]]).measured.startswith("text: 90.00")
    assert claims.check_best_on_lra([*longer, *equal]).verdict == "contradicted"


def test_several_seeds_widen_what_chance_explains():
    rows = ("links from X0", "links from the block's input")

    def judge(*errors: tuple[float, float]) -> str:
        runs = [
            make_run(row, "adding 1024", value, record={**make_run(row, "x", value).record, "seed": seed})
            for seed, values in enumerate(errors)
            for row, value in zip(rows, values, strict=True)
        ]
        return claims.check_links_from_first(runs).verdict

    assert judge((0.01, 0.05)) == "supported"
    assert judge((0.01, 0.05), (0.012, 0.052), (0.011, 0.049)) == "supported"
    assert judge((0.01, 0.09), (0.01, 0.02), (0.01, 0.03)) == "open"


def test_other_claims_follow_their_records():
    rows = ("links from X0", "links from the block's input")
    for errors, verdict in {
        (0.0, 0.1): "supported",
        (0.1, 0.0): "contradicted",
        (0.0, 0.0): "open",
        # Two sequences of 5000.
        (0.0, 0.0004): "open",
    }.items():
        both = [make_run(row, "adding 1024", value) for row, value in zip(rows, errors, strict=True)]
        assert claims.check_links_from_first(both).verdict == verdict
    lra = [
        make_lra(row, task, value) for task in ("text", "image") for row, value in ((CHORD, 0.5), ("Performer", 0.4))
    ]
    assert claims.check_best_on_lra(lra).verdict == "open"
    assert claims.check_best_on_lra([*lra, make_lra("S4D", "image", 0.9)]).verdict == "contradicted"
    aside = [make_lra(row, "text", 0.9) for row in ("n-gram counts + logistic regression", PAPER_INIT)]
    assert claims.check_best_on_lra([*lra, *aside]).verdict == "open"
    some = [*lra, make_lra(CHORD, "pathfinder", 0.7), make_lra("Performer", "pathfinder", 0.5)]
    few = claims.check_best_on_lra([*some, make_lra(CHORD, "listops", 0.4), make_lra("Nystromformer", "listops", 0.3)])
    assert few.verdict == "open"
    assert few.measured.endswith("4 of 40 baselines of the paper's table were run")
    run = {(one.row, one.column) for one in some} | {("Nystromformer", "listops")}
    tasks = ("listops", "text", "image", "pathfinder")
    theirs = {(row, task) for row, known in published.read_table().items() for task in tasks if task in known} - run
    every = [*some, *(make_lra(row, task, 0.2) for row, task in theirs if not row.startswith("Paramixer"))]
    verdicts = {0.3: "supported", 0.38: "open", 0.5: "contradicted", float("nan"): "supported"}
    for value, verdict in verdicts.items():
        listops = [make_lra(CHORD, "listops", 0.4), make_lra("Nystromformer", "listops", value)]
        assert claims.check_best_on_lra([*every, *listops]).verdict == verdict
    diverged = [make_lra(CHORD, "listops", float("nan")), make_lra("Nystromformer", "listops", 0.3)]
    assert claims.check_best_on_lra([*every, *diverged]).verdict == "contradicted"
    for longer, verdict in {0.6: "supported", 0.54: "open", 0.4: "contradicted"}.items():
        documents = [make_run(CHORD, f"documents-{size}", value) for size, value in (("16k", 0.5), ("32k", longer))]
        assert claims.check_longer_documents(documents).verdict == verdict


def test_targets_are_reached_or_missed_by_so_much():
    def make(row: str, value: float, trial: bool = False, **settings: object) -> records.StoredRun:
        epochs = [{"step": 1, "seconds": 10, "accuracy": 0.3}, {"step": 2, "seconds": 60, "accuracy": value}]
        record = {"metric": "accuracy", "test": {"accuracy": value}, "validation": value, "steps": 2, "seconds": 60.0}
        record |= {"epochs": epochs, "majority": 0.25}
        return make_run(row, "image", value, "table-lra", record=record, trial=trial, settings=settings)

    some = [
        make(CHORD, 0.40),
        make(CDIL, 0.44),
        make("Transformer", 0.9),
        make(CHORD, 0.2, True, training={"learning_rate": 0.1}),
    ]
    rows = {row[0]: row for row in targets.tabulate_targets(some).rows}
    assert rows["text"][3] == "not run"
    assert rows["documents-16k"][1] == "10 % over the largest class"
    assert rows["image"][1:] == [
        "accuracy >= 45.00 %",
        "44.00 % (Paramixer CDIL, 1 minute)",
        "missed by 1.00 points",
        "CHORD learning_rate 0.1: 20.0 %",
        "validation went from 30.00 to 44.00 %",
    ]
    assert {row[0]: row for row in targets.tabulate_targets([make(CDIL, 0.45)]).rows}["image"][3] == "yes"
    aside = dataclasses.replace(make(CDIL, 0.45), experiment="figure-rank")
    assert {row[0]: row for row in targets.tabulate_targets([aside]).rows}["image"][3] == "not run"
    documents = dataclasses.replace(make(CHORD, 0.36), column="documents-16k")
    assert {row[0]: row for row in targets.tabulate_targets([documents]).rows}["documents-16k"][3] == "yes"
    assert targets.describe_learning(make(CHORD, 0.3).record) == "no better"


def test_a_smoke_run_supports_no_claim(tmp_path):
    (tmp_path / "figure-rank").mkdir()
    chord = {"rank": 9, "length": 9, "above_a_thousandth": 4}
    softmax = {"rank": 9, "length": 9, "above_a_thousandth": 9, "rank_of_logits": 3, "error": 0.8, "channels": 3}
    document = {"scale": "smoke", "models": {CHORD: chord, "Transformer": softmax}}
    path = tmp_path / "figure-rank" / "singular-values.json"
    path.write_text(json.dumps(document))
    assert claims.check_full_rank(tmp_path).verdict == claims.check_bottleneck(tmp_path).verdict == "open"
    path.write_text(json.dumps(document | {"scale": "cpu"}))
    assert claims.check_full_rank(tmp_path).verdict == "supported"
    assert claims.check_bottleneck(tmp_path).verdict == "contradicted"
    document["models"]["Transformer"]["above_a_thousandth"] = 2
    path.write_text(json.dumps(document | {"scale": "cpu"}))
    assert claims.check_bottleneck(tmp_path).verdict == "open"
    document["models"]["Transformer"]["rank"] = 3
    path.write_text(json.dumps(document | {"scale": "cpu"}))
    assert claims.check_bottleneck(tmp_path).verdict == "supported"


def test_logits_are_those_of_the_attention():
    config = BaselineConfig(model="transformer", length=6, vocabulary=5, outputs=2, channels=4, hidden=4)
    model = registry.build(config).double().eval()
    tokens = torch.arange(6)[None] % 5
    result = rank.compute_logits(model, tokens)
    torch.testing.assert_close((result / 2).softmax(-1), rank.compute_matrix(model, tokens))
