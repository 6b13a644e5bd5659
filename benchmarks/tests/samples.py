"""Records for tests, without measuring anything."""

from __future__ import annotations

from typing import Any

from benchmarks.record import Record


def result(milliseconds: float, times: float, **changes: Any) -> dict[str, Any]:
    timing = {"seconds": milliseconds / 1e3, "rounds": [milliseconds / 1e3], "times_engine": times}
    phases = {"forward": {**timing, "share_of_peak": 0.5}, "both": {**timing, "share_of_peak": None}}
    return {"same": True, "errors": {}, "why": None, **phases, **changes}


def record(what: str, measured: dict[str, Any], **settings: Any) -> Record:
    machine = {"cpu": "a CPU", "cores": 2, "threads": 2, "instruction_set": "AVX2", "torch": "2.13.0"}
    return Record(
        what=what,
        settings={"quick": False, **settings},
        measured=measured,
        machine=machine,
        engine="cpu",
        engines={"cpu": "available"},
        commit="0123456789abcdef",
        at="2026-01-31T12:00:00+00:00",
        seconds=1.0,
    )


BLOCK = {
    "limits": {"flops": 1e11, "bandwidth": 2e10},
    "cases": {
        "block": {
            "case": "2 x 64",
            "flops": {"forward": 1, "both": 3},
            "predicted": {"engine": "cpu", "forward": {"seconds": 1e-3}, "backward": {"seconds": 2e-3}},
            "ways": {
                "paramixer": result(2, 1.0),
                "rolls": result(10, 5.0),
                "scatter": {"same": True, "errors": {"output": 1.0}, "why": "wrong: its output is off"},
            },
        }
    },
}
FIGURES = {
    "figures": [
        {"what": "against rolls", "sense": "at least", "bound": 5, "unit": "x", "measured": 6.123, "reached": True},
        {"what": "memory", "sense": "at most", "bound": 1.5, "unit": "GB", "measured": 1.75, "reached": False},
        {"what": "share", "sense": "at least", "bound": 55, "unit": "%", "measured": None, "reached": None},
    ]
}
STEP = {
    "presets": {
        "image": {
            "batch": 64,
            "length": 1024,
            "seconds": 0.25,
            "outside_paramix": 0.18,
            "shares": {
                part: {"forward": 0.04, "backward": 0.01}
                for part in ("embedding", "dropout", "g", "paramix", "head", "loss", "optimizer", "rest")
            },
        }
    }
}
SCALING = {
    "protocols": {
        "chord": {
            "law": "log^2 N",
            "why": None,
            "lengths": [16, 256],
            "batches": [16, 1],
            "forward": {"seconds_a_token": [1e-7, 4e-7], "growth": 1.0, "fit": 6e-9},
            "both": {"seconds_a_token": [2e-7, 1.2e-6], "growth": 1.5, "fit": 1.5e-8},
        },
        "cdil": {"law": "log N", "why": "N = 16: wrong: its output is off"},
    }
}
MEMORY = {
    "case": "2 x 64",
    "chain": [
        {"what": "forward", "keep": None, "peak": 3 * 10**8, "beyond": 10**7, "predicted": 9 * 10**6},
        {"what": "training", "keep": 2, "peak": 4 * 10**8, "beyond": 10**8, "predicted": 9 * 10**7},
    ],
    "long": {
        "case": "1 x 128",
        "forward": {"what": "network forward", "keep": None, "peak": 10**9, "beyond": 7 * 10**8, "predicted": None},
        "training": {"what": "network training", "keep": 4, "peak": 10**9, "beyond": 7 * 10**8, "predicted": None},
    },
}
TRAINING = {"preset": "listops", "length": 64, "batch": 4, "seconds": 1.0, "busy": 0.971, "lowest": 0.9}
MODELS = {
    "lengths": [16, 32],
    "batch": 1,
    "channels": 32,
    "models": {
        "paramixer": {
            "title": "Paramixer",
            "parameters": [100, 120],
            "peak": [10**6, 2 * 10**6],
            "seconds": [0.001, 0.002],
            "times": [1.0, 1.0],
            "stopped": None,
        },
        "mamba": {
            "title": "Mamba",
            "parameters": [101],
            "peak": [5 * 10**6],
            "seconds": [0.1],
            "times": [100.0],
            "stopped": "more than 10 s at N = 16",
        },
    },
}
KERNEL = {"kernel": "factor_forward", "numbers": "float32", "tile": 64, "warps": 4, "precision": "ieee"}
CODE = {"registers": 102, "local": 0, "spills": 0, "instructions": 1544, "shared": 12288, "blocks": 5}
COUNTS = {"loads": 100, "stores": 32, "memory": 96, "operations": 4096, "useful": 4000, "parameters": 7}
TRAFFIC = {"least": 96, "kernels": [{"kernel": "factor_forward", **COUNTS}]}
KERNELS = {
    "triton": "3.9.0",
    "kernels": [{"shape": "small", **KERNEL, "device": device, **CODE} for device in ("sm_80", "sm_90")],
    "traffic": {"small": {"forward": TRAFFIC, "backward": TRAFFIC}},
    "predicted": [
        {
            "case": "2 x 64",
            "device": "a100",
            "forward": {"seconds": 1e-4},
            "backward": {"seconds": 3e-4},
            "training_memory": 5 * 10**6,
        }
    ],
}
RECORDS = {
    "gpu-kernels": KERNELS,
    "models": MODELS,
    "training": TRAINING,
    "block": BLOCK,
    "figures": FIGURES,
    "step": STEP,
    "scaling": SCALING,
    "memory": MEMORY,
}
