"""The formats of an export: each turns a program into a file and runs that file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.export import ExportedProgram

from paramixer.export.program import ANSWERS, INPUTS, LENGTHS, quiet
from paramixer.extras import needed_for

Run = Callable[[Mapping[str, Tensor]], Tensor]
"""Takes inputs by name and returns answers."""

# Protocol buffers end here.
_MOST_BYTES = 2**31 - 1


def write_onnx(program: ExportedProgram, path: Path) -> Run:
    """Write a program as ONNX and return what onnxruntime makes of the file."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in program.state_dict.values())
    if size > _MOST_BYTES:
        raise ValueError(f"the model takes {size / 1e9:.1f} GB, an ONNX file holds 2.1 GB; use --format pt2")
    with needed_for("paramixer export --format onnx"):
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    names = [INPUTS, LENGTHS][: len(program.graph_signature.user_inputs)]
    with quiet():
        exported = torch.onnx.export(
            program, dynamo=True, verbose=False, input_names=names, output_names=[ANSWERS]
        )
        assert exported is not None
        exported.save(path)
    options = onnxruntime.SessionOptions()
    # Warnings about the graph help nobody who did not write it.
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        answers = session.run([ANSWERS], {name: tensor.numpy() for name, tensor in inputs.items()})
        return torch.from_numpy(answers[0])

    return run


def write_pt2(program: ExportedProgram, path: Path) -> Run:
    """Write a program of torch.export and return what torch makes of the file."""
    with quiet():
        torch.export.save(program, path)
        module = torch.export.load(path).module()

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        answers: Tensor = module(*inputs.values())
        return answers

    return run


FORMATS: dict[str, Callable[[ExportedProgram, Path], Run]] = {"onnx": write_onnx, "pt2": write_pt2}

