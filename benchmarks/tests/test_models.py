"""Baselines measured against Paramixer: which are stopped, and why."""

from __future__ import annotations

import json

import pytest

from benchmarks import models, record_tables
from benchmarks.__main__ import main
from benchmarks.tests import samples
from paramixer.bench.status import ignore


def job(**fields: object) -> models.Job:
    settings = {"name": "linear", "lengths": (16, 32), "batch": 1, "channels": 8, "hidden": 8, "threads": 1}
    return models.Job(**settings | {"limit": 60.0, "memory": 4.0} | fields)


def test_lengths_double():
    assert models.ModelsOptions(lengths="256..2048").each_length() == [256, 512, 1024, 2048]
    assert models.ModelsOptions(lengths="100..399").each_length() == [100, 200]
    assert models.ModelsOptions(lengths="64").each_length() == [64]
    for wrong in ("a..b", "64..32", "1..8", ""):
        with pytest.raises(ValueError, match="lengths="):
            models.ModelsOptions(lengths=wrong)


@pytest.mark.parametrize("name", ["transformer", "chordmixer", "linformer"])
def test_layers_have_as_many_parameters_as_a_block(name):
    paramixer, baseline = (
        models.count_layer_parameters(models.make_config(which, 256, 32, 32)) for which in ("paramixer", name)
    )
    assert baseline == pytest.approx(paramixer, rel=0.03)


def test_what_grows_with_the_length_alone_is_not_forced():
    result = models.make_config("linformer", 8192, 32, 32)
    assert result.channels == 32
    assert result.rank == 1


def test_a_slow_one_stops_and_says_so():
    result = models._measure_alone(job(limit=1e-9), ignore)
    assert len(result["peak"]) == 1
    assert result["stopped"] == "more than 1e-09 s at N = 16"


def test_one_that_wants_too_much_memory_stops_and_says_so():
    result = models._measure_alone(job(lengths=(16, 1 << 22), channels=64, memory=0.2), ignore)
    assert len(result["peak"]) == 1
    assert result["stopped"] == f"out of 0.2 GB at N = {1 << 22}"


def test_one_that_breaks_says_why():
    result = models._measure_alone(job(name="longformer", channels=0), ignore)
    assert "it must be at least 1" in result["stopped"]


def test_the_record_has_ratios_only_for_what_was_timed(tmp_path, capsys):
    arguments = ["models", "--quick", "--models", "linear", "--out", str(tmp_path), "--channels", "8"]
    assert main(arguments) == 0
    measured = json.loads((tmp_path / "models-quick.json").read_text())["measured"]
    assert measured["lengths"] == [16, 32]
    for result in measured["models"].values():
        assert len(result["peak"]) == len(result["times"]) == len(result["parameters"]) == 2
    assert measured["models"]["paramixer"]["times"] == [1, 1]
    assert (tmp_path / "models-quick.svg").is_file()
    assert "Linear Transformer" in capsys.readouterr().out


def test_ngrams_have_no_layer():
    with pytest.raises(ValueError, match="no layer to measure"):
        models.ModelsOptions(models=("ngrams",))


def test_cells_that_were_not_run_are_empty():
    text = record_tables.format_record(samples.record("models", samples.MODELS))
    assert "| Mamba | 100.00x |  | more than 10 s at N = 16 |" in text
    assert "| Paramixer itself | 1 ms | 2 ms |  |" in text
