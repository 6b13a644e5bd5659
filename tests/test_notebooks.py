"""The notebooks run from top to bottom, and are stored with their outputs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
sys.path.append(str(ROOT / "tools"))
from notebook_pages import convert  # noqa: E402


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["dna", "texts", "time-series"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored_in_order_and_name_no_machine(path):
    document = json.loads(path.read_text())
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert all(output.get("name", "stdout") == "stdout" for output in outputs)
    assert not re.search(r"/(?:home|tmp|root|usr|work)/", path.read_text())
    # The result is in words, and so is the baseline's.
    printed = "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
    assert re.search(r"^paramixer: [01]\.\d{3}", printed, re.MULTILINE)
    assert re.search(r"^(?:n-grams|k-mers|values): [01]\.\d{3}", printed, re.MULTILINE)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_page_has_every_cell_and_every_picture(path):
    document = json.loads(path.read_text())
    text, pictures = convert(path)
    for cell in document["cells"]:
        body = "".join(cell["source"])
        assert body.split("\n", 1)[-1] in text
    count = sum(
        "image/png" in output.get("data", {}) for cell in document["cells"] for output in cell.get("outputs", ())
    )
    assert len(pictures) == count
    assert all(content.startswith(b"\x89PNG") and name in text for name, content in pictures.items())


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat, nbclient and ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="needs nbformat, nbclient and ipykernel")
    monkeypatch.setenv("PARAMIXER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(path, as_version=4)
    # A cell may take longer than two minutes on a machine that others use.
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
