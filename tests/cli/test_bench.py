"""``paramixer bench``, ``cost`` and ``models``: their tables, within 80 columns."""

from __future__ import annotations

import pytest

from paramixer.baselines import registry
from paramixer.cli import main


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def read_output(words: str, capsys) -> str:
    assert main(words.split()) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_cost_prints_operations_time_and_memory(capsys):
    text = read_output("cost --length 1024 --batch 1 --backend cpu --gflops 100", capsys)
    # 10 factors, 11 links: 1024 x 10 x 2 x (32 x 32 + 32 x 11 + 11 x 32)
    assert "3.539e+07" in text
    assert "100 GFLOP/s" in text
    assert "predicted peak memory" in text


def test_checkpoints_save_memory_in_the_prediction(capsys):
    def predict(every: int) -> float:
        text = read_output(f"cost --length 4096 --backend cpu --checkpoint-every {every}", capsys)
        line = next(line for line in text.splitlines() if "predicted peak memory" in line)
        return float(line.split()[-2])

    assert predict(4) < predict(1)


def test_bench_verifies_and_times_every_implementation(capsys):
    text = read_output("bench --quick --length 64 --threads 1 --only rolls --only gather --only scatter", capsys)
    words = " ".join(text.split())
    for name in ("paramixer", "PyTorch rolls", "PyTorch gather", "gather-scatter", "predicted for backend"):
        assert name in words
    assert "softmax" not in words
    assert "A quick run: its times mean nothing." in words


def test_models_lists_every_baseline_with_what_it_costs(capsys):
    text = read_output("models --length 64", capsys)
    for name in ("paramixer", *registry.BASELINES):
        assert f" {name} " in text
    assert "ngrams: tokens with classes only" in text


def test_matched_models_have_about_as_many_parameters_as_paramixer(capsys):
    text = read_output("models --length 64 --match", capsys)
    counts = {line.split()[0]: line.split() for line in text.splitlines() if line[1:2].isalpha()}
    own = next(int(word) for word in counts["paramixer"] if word.isdigit())
    for name in ("transformer", "linear", "s4d"):
        other = next(int(word) for word in counts[name] if word.isdigit())
        assert other == pytest.approx(own, rel=0.05)


def test_a_baseline_that_is_not_installed_is_listed_as_such(capsys, monkeypatch):
    monkeypatch.setattr(registry.Baseline, "missing_packages", ("linformer",))
    assert "not installed" in " ".join(read_output("models --length 64", capsys).split())
