"""Two processes on one machine: the same losses as one with twice the batch, and every item counted once."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

pytestmark = pytest.mark.slow

WORKER = """
import json, sys
from pathlib import Path
import torch
from accelerate import Accelerator
from paramixer.training.inference import predict_split
from paramixer.training.batches import Collate
from paramixer.training.fit import fit
from paramixer.training.options import TrainingOptions
from table_model import TableModel, make_model
from paramixer.training import factory
from training import tiny

folder, batch, with_tables = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "tables"
torch.set_num_threads(1)
accelerator = Accelerator(cpu=True)
model = make_model() if with_tables else tiny.model()
if with_tables:
    factory.load_model = TableModel.from_pretrained
model.dropout.p = model.blocks[0].dropout.p = 0.0
clip = 0.5 if with_tables else None
options = TrainingOptions(steps=50, batch=batch, log_every=1, evaluate_every=25, learning_rate=0.01, clip=clip)
# 41 sequences: the last batch of an epoch leaves one process with nothing.
fit(model, tiny.task(train=41, test=1001), options, folder=folder / "run", seed=3)
answers, targets = predict_split(model, tiny.task(test=1001).test, 16, Collate(0, False), accelerator)
if accelerator.is_main_process:
    (folder / "answers.json").write_text(json.dumps([answers.tolist(), targets.tolist()]))
print("rank", accelerator.process_index, "of", accelerator.num_processes)
"""


def launch(folder: Path, processes: int, batch: int, kind: str = "plain") -> str:
    folder.mkdir()
    (folder / "worker.py").write_text(WORKER)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(processes),
        "OMP_NUM_THREADS": "1",
        "ACCELERATE_USE_CPU": "true",
    }
    running = []
    for rank in range(processes):
        ranked = {"RANK": str(rank), "LOCAL_RANK": str(rank)} if processes > 1 else {}
        own = {name: value for name, value in environment.items() if processes > 1 or name != "WORLD_SIZE"}
        command = [sys.executable, str(folder / "worker.py"), str(folder), str(batch), kind]
        running.append(
            subprocess.Popen(command, env=own | ranked, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )
    outputs = [process.communicate(timeout=240) for process in running]
    for process, (_, errors) in zip(running, outputs, strict=True):
        assert process.returncode == 0, errors[-3000:]
    return "".join(output for output, _ in outputs)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """One process with a batch of 8, and two with 4 each."""
    folder = tmp_path_factory.mktemp("distributed")
    one, two = launch(folder / "one", 1, 8), launch(folder / "two", 2, 4)
    assert "rank 0 of 1" in one
    assert "rank 1 of 2" in two
    return {"one": folder / "one", "two": folder / "two"}


def lines(folder: Path, kind: str) -> list[dict[str, float]]:
    text = (folder / "run" / "metrics.jsonl").read_text()
    return [line for line in map(json.loads, text.splitlines()) if line["kind"] == kind]


def test_two_processes_learn_as_one_with_twice_the_batch(runs):
    one, two = ([line["loss"] for line in lines(runs[name], "train")] for name in ("one", "two"))
    assert len(one) == 50
    assert two == pytest.approx(one, abs=1e-5)
    assert one[-1] != one[0]
    tokens = [lines(runs[name], "train")[-1]["tokens"] for name in ("one", "two")]
    assert tokens[0] == tokens[1]


def test_two_processes_train_tables_as_one_does(tmp_path):
    launch(tmp_path / "one", 1, 8, "tables"), launch(tmp_path / "two", 2, 4, "tables")
    one, two = ([line["loss"] for line in lines(tmp_path / name, "train")] for name in ("one", "two"))
    assert len(one) == 50
    assert two == pytest.approx(one, abs=1e-4)
    stored = [load_file(tmp_path / name / "run" / "model" / "model.safetensors") for name in ("one", "two")]
    assert torch.equal(stored[0]["tables.weight:rows"], stored[1]["tables.weight:rows"])


def test_every_item_is_answered_exactly_once_and_in_order(runs):
    (found, targets), (again, same) = (json.loads((runs[name] / "answers.json").read_text()) for name in ("one", "two"))
    assert len(found) == len(again) == 1001
    assert targets == same
    for one, two in zip(found, again, strict=True):
        assert two == pytest.approx(one, abs=1e-3)


def test_only_the_first_process_writes(runs):
    steps = [line["step"] for line in lines(runs["two"], "validation")]
    assert steps == [25, 50]
    assert len(list((runs["two"] / "run" / "state").iterdir())) == 1


def test_the_same_command_runs_under_torchrun(tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m", "paramixer"]
    data = ["--set", "data.train=41", "--set", "data.validation=9", "--set", "data.test=7"]
    small = ["--length", "12", *data, "--set", "training.steps=6", "--batch", "4"]
    command = [*launcher, "train", "order", *small, "--set", "model.channels=6"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    found = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True, timeout=240)
    assert found.returncode == 0, found.stderr[-3000:]
    assert found.stdout.count("test error") == 1
    record = json.loads((tmp_path / "runs" / "order-1" / "record.json").read_text())
    assert record["processes"] == 2
    assert not (tmp_path / "runs" / "order-2").exists()

    def again(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*launcher, *words], cwd=tmp_path, env=environment, text=True, capture_output=True, timeout=240
        )

    resumed = again("train", "--resume", "runs/order-1", "--set", "training.steps=12")
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    assert json.loads((tmp_path / "runs" / "order-1" / "record.json").read_text())["steps"] == 12
    assert again("evaluate", "runs/order-1").stdout.count("test, 7 sequences") == 1
