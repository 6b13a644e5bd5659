"""Benchmarks of a GPU with the CPU in its place: what is measured, waited for and written down."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType

from benchmarks import memory, models, step, targets, training
from benchmarks.__main__ import main
from paramixer.bench import limits
from paramixer.bench.case import Case
from paramixer.bench.comparison import IMPLEMENTATIONS
from paramixer.bench.device import use_device
from paramixer.bench.status import ignore
from paramixer.cli import main as paramixer
from paramixer.training.device import training_device


@pytest.mark.slow
def test_figures_of_a_gpu_are_one_command(pretended_gpu, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(IMPLEMENTATIONS, "compiled rolls", IMPLEMENTATIONS["rolls"])
    monkeypatch.setattr(targets.memory, "measure_peak", lambda job: {"before": 1, "peak": 2 * 10**9})
    # No kernel ran on a GPU, so that there is no time to be divided.
    monkeypatch.setattr(step, "split_device_time", step.split_by_part)
    assert main(["figures", "--device", "cuda", "--quick", "--threads", "1", "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "figures-cuda-quick.json").read_text())
    assert record["machine"]["gpu"] == "pretended GPU"
    assert record["measured"]["limits"]["flops"] > 0
    missing = [one["what"] for one in record["measured"]["figures"] if one["measured"] is None]
    assert missing == ["batch of 1, N = 16384: two threads against one"]
    assert "on pretended GPU" in " ".join(capsys.readouterr().out.split())
    assert pretended_gpu


def test_bench_measures_the_gpu_and_its_limits_in_one_run(pretended_gpu, capsys):
    words = ["bench", "--device", "cuda", "--quick", "--length", "64", "--threads", "1", "--only", "rolls"]
    assert paramixer(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "pretended GPU" in text
    assert "GEMM peak" in text
    assert len(pretended_gpu) > 4


def test_limits_of_a_gpu_are_waited_for(pretended_gpu):
    with use_device("cuda"):
        limits.measure_limits(ignore, quick=True)
    # A warm-up and ten repeats each of the product, the copy and the triad.
    assert len(pretended_gpu) == 3 * 11


def test_memory_of_a_gpu_is_that_of_its_tensors(pretended_gpu, capsys):
    memory._run_job(memory.Job(what="training", case=Case(batch=1, length=64), device="cuda"))
    assert json.loads(capsys.readouterr().out) == {"before": 10, "peak": 30}


def test_the_time_of_kernels_belongs_to_the_op_that_started_them():
    def event(name, own, total, parent=None, device=DeviceType.CPU):
        times = {"self_device_time_total": own, "device_time_total": total}
        return SimpleNamespace(name=name, device_type=device, cpu_parent=parent, **times)

    backward = event("autograd::engine::evaluate_function: ParamixBackward", 0, 30)
    events = [
        event("paramixer::paramix", 10, 10),
        backward,
        event("paramixer::paramix_backward", 30, 30, backward),
        event("aten::add", 10, 10),
        event("factor_forward", 10, 10, device=DeviceType.CUDA),
    ]
    shares = step.split_device_time(events)
    assert shares["paramix"] == {"forward": 0.2, "backward": 0.6}
    assert shares["rest"]["forward"] == pytest.approx(0.2)


def test_baselines_are_measured_on_the_gpu(pretended_gpu, monkeypatch, capsys):
    limited = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", limited.append)
    properties = SimpleNamespace(total_memory=24 * 10**9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda: properties)
    sizes = {"lengths": (16, 32), "batch": 1, "channels": 8, "hidden": 8}
    models._run_job(models.Job(name="paramixer", **sizes, limit=60.0, memory=6.0, threads=1, device="cuda"))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["length"], line["peak"]) for line in lines] == [(16, 20), (32, 20)]
    assert limited == [0.25]


def test_the_loop_is_measured_on_the_device_asked_for(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    assert training_device() == "cuda"
    asked = []

    def fit(*arguments, **options):
        asked.append(training_device())
        raise InterruptedError

    monkeypatch.setattr(training, "fit", fit)
    with pytest.raises(InterruptedError):
        training.measure(training.LoopOptions(quick=True, device="cpu"), ignore)
    assert asked == ["cpu"]
