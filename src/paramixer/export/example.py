"""Answers of an exported model without paramixer: python example.py "a text" "another", or "[[1.5], [2]]" for numbers.

It needs numpy and onnxruntime, or torch for a model of --format pt2.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

folder = Path(__file__).parent
preprocessing = json.loads((folder / "preprocessing.json").read_text(encoding="utf-8"))


def encode(raw: Any) -> np.ndarray:
    """Return a text as token ids, or numbers as [length, features], cut to the model's length."""
    p = preprocessing
    if p["kind"] == "numbers":
        return np.asarray(raw, np.float32).reshape(len(raw), p["features"])[: p["length"]]
    text = raw.upper() if p["upper_case"] else raw
    ids = {symbol: number for number, symbol in enumerate(p["symbols"])}
    units = list(text) if p["unit"] == "character" else text.split()
    unknown = [unit for unit in units if unit not in ids]
    if unknown and p["unknown"] is None:
        raise ValueError(f"{unknown[0]!r} is not in the vocabulary")
    first = [] if p["cls"] is None else [p["cls"]]
    return np.array([*first, *(ids.get(unit, p["unknown"]) for unit in units)], np.int64)[: p["length"]]


def collate(sequences: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Return a batch of sequences as the inputs of the model by name, padded to the longest."""
    p = preprocessing
    width = max(p["shortest_width"], *map(len, sequences))
    shape = (len(sequences), width, *sequences[0].shape[1:])
    batch = np.full(shape, p.get("pad", 0), sequences[0].dtype)
    for row, sequence in zip(batch, sequences, strict=True):
        row[: len(sequence)] = sequence
    inputs = {"inputs": batch, "lengths": np.array([len(sequence) for sequence in sequences], np.int64)}
    return {name: inputs[name] for name in p["inputs"]}


def predict(run: Callable[[dict[str, np.ndarray]], np.ndarray], raws: list[Any]) -> tuple[list[Any], Any]:
    """Return the class (or the value) of every raw input, and the probabilities of the classes."""
    answers = run(collate([encode(raw) for raw in raws]))
    if preprocessing["target"] == "value":
        return [float(answer) for answer in answers], None
    shares = np.exp(answers - answers.max(-1, keepdims=True))
    return [preprocessing["classes"][best] for best in answers.argmax(-1)], shares / shares.sum(-1, keepdims=True)


def open_model(path: Path) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
    """Return a function from the model's inputs to its answers."""
    if path.suffix == ".pt2":
        import torch

        module = torch.export.load(path).module()
        return lambda inputs: module(*map(torch.from_numpy, inputs.values())).detach().numpy()
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    return lambda inputs: session.run(None, inputs)[0]


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    try:
        raws = [json.loads(word) for word in sys.argv[1:]] if preprocessing["kind"] == "numbers" else sys.argv[1:]
        for raw in raws:
            encode(raw)
    except (TypeError, ValueError) as error:
        kind = f"lists of {preprocessing['features']} numbers" if preprocessing["kind"] == "numbers" else "texts"
        sys.exit(f"the model reads {kind}: {error}")
    predictions, _ = predict(open_model(folder / preprocessing["model"]), raws)
    print(*predictions, sep="\n")
