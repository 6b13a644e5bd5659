"""Which runs the tables and figures are made of."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from experiments import figures, records
from experiments.cells import CDIL, CHORD, DEFAULT, Sources, override, settings_key
from experiments.plan import EXPERIMENTS
from experiments.quick.run import resolve_quick
from experiments.reproduce import Name, Options, list_cells
from experiments.tests.small import TINY
from paramixer.training.runs.run import RunSettings

ROOT = Path(__file__).parents[2]
EVERYWHERE = Sources(*(Path("somewhere"),) * 7)


@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_is_a_run_of_its_own(name, scale):
    cells = list(EXPERIMENTS[name](scale, EVERYWHERE))
    assert cells
    places = [(cell.row, cell.column, cell.settings.seed) for cell in cells]
    assert len(set(places)) == len(places)
    for cell in cells:
        keys = [settings_key(run, scale) for run in (*cell.trials(), *map(cell.final, cell.choices))]
        assert len(set(keys)) == len(keys)
        training = cell.settings.training
        if scale == "cpu" and cell.settings.system != "ngrams":
            assert training.get("minutes", 0) > 0 or (name == "table-ablations" and training["steps"] > 0)
        if scale == "paper":
            assert not {"minutes", "learning_rate"} & training.keys()


def test_shards_share_all_cells_between_them():
    whole = list_cells("figure-synthetic", Options(scale="cpu"))
    parts = [list_cells("figure-synthetic", Options(scale="cpu", shard=f"{n}/3")) for n in (1, 2, 3)]
    assert sorted(cell.row + cell.column for part in parts for cell in part) == sorted(
        cell.row + cell.column for cell in whole
    )
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for wrong in ("0/2", "3/2", "a", "1"):
        with pytest.raises(ValueError, match="shard="):
            Options(shard=wrong)


def test_more_seeds_are_more_runs_of_every_cell():
    one, three = (list_cells("figure-rank", Options(scale="cpu", seeds=count)) for count in (1, 3))
    assert [cell.settings.seed for cell in one] == [0, 0]
    assert [cell.settings.seed for cell in three] == [0, 0, 1, 1, 2, 2]
    assert three[:2] == list_cells("figure-rank", Options(scale="cpu"))


@pytest.mark.parametrize("name", ["figure-synthetic", "table-lra", "table-genome", "figure-rank"])
def test_baselines_have_the_recipe_of_paramixer(name):
    """If there are choices, it is one of them."""
    cells = list(EXPERIMENTS[name]("cpu", EVERYWHERE))
    recipes = {cell.column: cell.settings.recipe for cell in cells if cell.row in (CHORD, CDIL)}
    baselines = [cell for cell in cells if cell.settings.system not in ("paramixer", "ngrams")]
    assert baselines
    for cell in baselines:
        assert recipes[cell.column] == "quick"
        assert "quick" in [cell.final(choice).recipe for choice in cell.choices]


def test_a_baseline_takes_learning_rate_clip_and_head_factor_of_the_quick_recipe():
    settings = RunSettings(task="order", data={"length": 512, "train": 40, "validation": 8, "test": 8}, recipe="quick")
    task = settings.load_task()
    ours, theirs = (resolve_quick(task, override(settings, {"system": name})) for name in ("paramixer", "transformer"))
    assert theirs.resolved.training == ours.resolved.training
    assert theirs.lr_factors == ours.lr_factors == {"head.linear.weight": "300/length"}
    assert theirs.resolved.init.embedding_bound == ours.init.embedding_bound


def test_nothing_is_set_for_the_default_network_but_data_and_minutes():
    cells = list(EXPERIMENTS["table-default"]("cpu", EVERYWHERE))
    ours = [cell for cell in cells if cell.row == DEFAULT]
    synthetic = {f"{task} {length}" for task in ("adding", "order") for length in (256, 1024, 4096, 16384)}
    assert {cell.column for cell in ours} == {"text", "reviews", "genome", "image", *synthetic}
    for cell in ours:
        assert cell.settings.recipe == "default"
        assert not cell.settings.model
        assert not cell.settings.init
        assert cell.settings.training.keys() == {"minutes"}
    # N-grams are counted in the same data.
    for cell in cells:
        if cell.row != DEFAULT:
            place = cell.column, cell.settings.seed
            (own,) = [one for one in ours if (one.column, one.settings.seed) == place]
            assert (cell.settings.task, cell.settings.data) == (own.settings.task, own.settings.data)


def test_the_papers_genomes_are_run_as_the_paper_did():
    cells = {(cell.row, cell.column): cell.settings for cell in EXPERIMENTS["table-genome"]("paper", EVERYWHERE)}
    assert {column for _, column in cells} == {"hfdna", "mtcdna"}
    assert cells[CHORD, "mtcdna"].task == "mtcdna"
    deep = [place for place, settings in cells.items() if settings.model.get("blocks") == 4]
    assert sorted(deep) == [("Transformer", "hfdna"), ("Transformer-LS", "mtcdna")]
    # Two blocks are Paramixer's own.
    assert cells["Transformer", "mtcdna"].model["blocks"] == 1


def test_every_experiment_can_be_asked_for():
    pictures = {"figure-lengths", "figure-examples", *figures.DRAWINGS}
    assert set(get_args(Name)) == {*EXPERIMENTS, *pictures, "page", "all"}


def test_overrides_replace_add_and_remove_settings():
    changed = override(TINY, {"model.hidden": 3, "training.steps": None, "seed": 4, "recipe": "quick"})
    assert changed.model == {"channels": 6, "hidden": 3}
    assert changed.training == {"batch": 4, "evaluate_every": 3}
    assert (changed.seed, changed.recipe) == (4, "quick")
    assert TINY.training["steps"] == 6


def test_every_record_counts_for_a_cell():
    cells = [cell for make in EXPERIMENTS.values() for scale in ("cpu", "paper") for cell in make(scale, EVERYWHERE)]
    stored = records.read_runs(ROOT / "results")
    assert stored
    for run in stored:
        (cell,) = [cell for cell in cells if run.belongs_to(cell)]
        if run.trial:
            assert len(cell.choices) > 1, run.path
        else:
            assert records.find_final(cell, stored) == run, run.path
