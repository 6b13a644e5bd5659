"""The formats of an export: each turns a program into the content of a file, and runs that content."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.export import ExportedProgram

from paramixer.export.program import ANSWERS, INPUTS, LENGTHS, quiet
from paramixer.extras import needed_for

Run = Callable[[Mapping[str, Tensor]], Tensor]
"""Takes inputs by name and returns answers."""

# Protocol buffers end here.
_MOST_BYTES = 2**31 - 1


def to_onnx(program: ExportedProgram) -> tuple[bytes, Run]:
    """Return a program as ONNX, and what onnxruntime makes of it."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in program.state_dict.values())
    if size > _MOST_BYTES:
        raise ValueError(f"the model takes {size / 1e9:.1f} GB, an ONNX file holds 2.1 GB; use --format pt2")
    check_installed("onnx")
    import onnxruntime

    names = [INPUTS, LENGTHS][: len(program.graph_signature.user_inputs)]
    with quiet():
        exported = torch.onnx.export(program, dynamo=True, verbose=False, input_names=names, output_names=[ANSWERS])
    assert exported is not None
    content: bytes = exported.model_proto.SerializeToString()
    options = onnxruntime.SessionOptions()
    # Errors only: warnings about the graph help nobody who did not write it.
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        answers = session.run([ANSWERS], {name: tensor.numpy() for name, tensor in inputs.items()})
        return torch.from_numpy(answers[0])

    return content, run


def to_pt2(program: ExportedProgram) -> tuple[bytes, Run]:
    """Return a program as torch.export saves it, and what torch makes of that."""
    buffer = io.BytesIO()
    with quiet():
        torch.export.save(program, buffer)
        buffer.seek(0)
        module = torch.export.load(buffer).module()

    @torch.no_grad()
    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        answers: Tensor = module(*inputs.values())
        return answers

    return buffer.getvalue(), run


FORMATS: dict[str, Callable[[ExportedProgram], tuple[bytes, Run]]] = {"onnx": to_onnx, "pt2": to_pt2}


def check_installed(format: str) -> None:
    """Raise an error that names the extra if a package is missing that the format needs."""
    if format == "onnx":
        with needed_for("paramixer export --format onnx"):
            import onnx  # noqa: F401
            import onnxruntime  # noqa: F401
            import onnxscript  # noqa: F401
