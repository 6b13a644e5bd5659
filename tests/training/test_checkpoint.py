"""Checkpoints that are damaged, foreign, malicious, or could not be written."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import resource
import shutil

import numpy as np
import pytest
import torch

import paramixer as pm
from paramixer.data.storage.in_memory import MemorySequences
from paramixer.data.task import Task, TaskInfo
from paramixer.training.callback import Callback
from paramixer.training.callbacks.checkpoint import find_latest
from paramixer.training.fit import fit
from paramixer.training.runs.folder import RunFolder
from training import tiny
from training.test_fit import same_weights, timeless


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.fixture
def run(tmp_path):
    """A finished run and its only checkpoint."""
    tiny.run(tmp_path / "run")
    newest = find_latest(tmp_path / "run" / "state")
    assert newest is not None
    return tmp_path / "run", newest


def test_a_newer_format_asks_for_a_newer_version(run):
    folder, newest = run
    document = json.loads((newest / "state.json").read_text())
    (newest / "state.json").write_text(json.dumps(document | {"format": 2}))
    with pytest.raises(ValueError, match=r"has format 2, this version of paramixer reads 1; install a newer one"):
        tiny.run(folder, resume=True)
    record = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps(record | {"format": 9}))
    with pytest.raises(ValueError, match="has format 9"):
        tiny.run(folder, resume=True)


def test_a_damaged_checkpoint_is_named(run):
    folder, newest = run
    tensors = (newest / "tensors.safetensors").read_bytes()
    (newest / "tensors.safetensors").write_bytes(tensors[:-9])
    with pytest.raises(ValueError, match="tensors.safetensors is damaged"):
        tiny.run(folder, resume=True)
    (newest / "state.json").write_text("{")
    with pytest.raises(ValueError, match="state.json is damaged"):
        tiny.run(folder, resume=True)


def test_a_pickle_in_a_run_folder_runs_nothing(run, tmp_path):
    folder, newest = run
    content = pickle.dumps(Malicious(tmp_path / "ran"))
    (newest / "tensors.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        tiny.run(folder, resume=True)
    (folder / "model" / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        pm.Paramixer.from_pretrained(folder / "model")
    (folder / "config.yaml").write_text("# paramixer run, format 2\ntask: !!python/object/apply:os.mkdir [ran]\n")
    with pytest.raises(ValueError, match="config.yaml is damaged"):
        RunFolder(folder).read_config()
    assert not (tmp_path / "ran").exists()


def test_a_full_disk_loses_nothing(tmp_path):
    """From step 6 on no file may grow beyond a few bytes, as on a full disk."""

    class Filling(Callback):
        def on_step(self, loop):
            if loop.progress.step == 6:
                resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    whole, _ = tiny.run(tmp_path / "whole")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(
            OSError, match="metrics.jsonl cannot be written: no space is left; the lines from before are kept"
        ):
            fit(tiny.model(), tiny.task(), tiny.OPTIONS, folder=tmp_path / "run", seed=5, callbacks=[Filling()])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    kept = find_latest(tmp_path / "run" / "state")
    assert kept is not None
    assert kept.name.startswith("step-000000004")
    resumed, _ = tiny.run(tmp_path / "run", resume=True)
    assert same_weights(whole, resumed)
    assert timeless(tmp_path / "run") == timeless(tmp_path / "whole")


def test_batches_by_length_resume_exactly(tmp_path):
    draws = np.random.Generator(np.random.Philox(3))

    def split(count: int) -> MemorySequences:
        sequences = [draws.normal(size=(length, 1)).astype(np.float32) for length in draws.integers(2, 13, count)]
        return MemorySequences(sequences, np.array([float(sequence.sum()) for sequence in sequences]))

    info = TaskInfo(name="sums", preset="adding", metric="mse", target="value", length=12, features=1)
    task = Task.from_splits(info, {"train": split(33), "validation": split(9), "test": split(7)}, "0" * 64)
    config = pm.ParamixerConfig(
        layer="paper", length=12, features=1, outputs=1, target="value", channels=6, hidden=5, padding="length"
    )
    ends = {}
    for name, stops in (("whole", [12]), ("parts", [4, 8, 12])):
        for number, stop in enumerate(stops):
            model = pm.Paramixer(config, generator=torch.Generator().manual_seed(0))
            options = dataclasses.replace(tiny.OPTIONS, steps=stop)
            fit(model, task, options, folder=tmp_path / name, resume=number > 0)
        ends[name] = model
    assert same_weights(ends["whole"], ends["parts"])
    assert timeless(tmp_path / "whole") == timeless(tmp_path / "parts")
    shutil.rmtree(tmp_path / "parts")
