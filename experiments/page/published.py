"""The paper's own numbers, shown beside ours. None of them was measured here."""

from __future__ import annotations

# Error in % on Adding and Temporal Order. None: the paper says that it does not work there.
ERRORS: dict[str, dict[str, dict[int, float | None]]] = {
    "adding": {
        "Paramixer CHORD": {2**power: 0.0 for power in range(7, 16)},
        "Linformer": {1024: 33.38, 2048: None},
        "Reformer": {1024: 30.20, 2048: None},
        "Transformer": {1024: 0.06, 2048: None},
        "Performer": {4096: 29.24, 8192: None},
        "Nystromformer": {**{2**power: 0.0 for power in range(7, 13)}, 8192: None},
    },
    "order": {
        "Paramixer CHORD": {**{2**power: 0.0 for power in range(7, 14)}, 16384: 1.16},
        "Performer": {2048: 0.48, 16384: 7.6},
        "Nystromformer": {2048: 0.0, 16384: 7.9},
        "Linformer": {4096: None, 8192: None},
        "Transformer": {4096: None, 8192: None},
        "Reformer": {16384: None},
    },
}

# Accuracy in % (ROC AUC for the genomes), as printed: slashes separate numbers of several papers.
COLUMNS = ("listops", "text", "image", "pathfinder", "documents-16k", "documents-32k", "hfdna", "mtcdna")
_TABLE = """
Transformer | 36.37 / 37.13 / 37.10 | 64.27 / 65.35 / 65.02 | 42.44 / - / 38.20 | 71.40 / - / 74.16 | 25.62 | 25.62 | 94.32 | 79.38
Sparse Transformer | 17.07 | 63.58 | 44.24 | 71.71
Longformer | 35.63 | 62.58 | 42.22 | 69.71
Linformer | 37.70 / 37.38 / 37.25 | 53.94 / 56.12 / 55.91 | 38.56 / - / 37.84 | 76.34 / - / 67.60 | 64.69 | 65.36 | 91.65 | 77.06
Reformer | 37.27 / 36.44 / 19.05 | 56.10 / 64.88 / 64.88 | 38.07 / - / 43.29 | 68.50 / - / 69.36 | 25.04 | 25.04 | 92.32 | 74.94
Performer | 18.01 / 32.78 / 18.80 | 65.40 / 65.21 / 63.81 | 42.77 / - / 37.07 | 77.05 / - / 69.87 | 25.62 | 25.20 | 93.46 | 78.92
BigBird | 36.06 | 64.02 | 40.83 | 74.87
Linear Transformer | 16.13 | 65.90 | 42.34 | 75.30
Transformer-LS | 38.36 | 68.40 | | | 70.25 | 60.93 | 93.19 | 75.81
RFA-Gaussian | 36.80 | 66.00
Nystromformer | - / 37.34 / 37.15 | - / 65.75 / 65.52 | 41.58 | 70.94 | 71.70 | 67.69 | 92.26 | 71.98
Paramixer CHORD | 39.57 ± 0.32 | 83.12 ± 0.33 | 45.01 ± 0.21 | 80.49 ± 0.13 | 83.89 | 84.55 | 100.00 | 84.86
Paramixer CDIL | 37.78 ± 0.28 | 83.32 ± 0.19 | 46.58 ± 0.05 | 67.13 ± 0.42
"""  # noqa: E501


def read_table() -> dict[str, dict[str, str]]:
    """Return the cells of the paper's tables, by model and column; what the paper does not have is missing."""
    table: dict[str, dict[str, str]] = {}
    for line in _TABLE.strip().splitlines():
        model, *cells = (cell.strip() for cell in line.split("|"))
        table[model] = {column: cell for column, cell in zip(COLUMNS, cells, strict=False) if cell}
    return table


def format_error(task: str, model: str, length: int) -> str:
    """Return the paper's error as text; empty if it has none."""
    known = ERRORS[task].get(model, {})
    if length not in known:
        return ""
    error = known[length]
    return "fails" if error is None else f"{error:g} %"
