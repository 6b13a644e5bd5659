"""The package as strangers get it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

import paramixer as pm

ROOT = Path(__file__).parent.parent

SMOKE = """
import paramixer as pm, sys, torch
assert "site-packages" in pm.__file__, pm.__file__
heavy = {"matplotlib", "pandas", "sklearn", "accelerate", "transformers", "huggingface_hub", "rich"} & set(sys.modules)
assert not heavy, heavy
model = pm.Paramixer(pm.preset("listops", length=64))
loss = torch.nn.functional.cross_entropy(model(torch.randint(16, (4, 64))), torch.tensor([0, 1, 2, 3]))
loss.backward()
model.save_pretrained("model")
tokens = torch.randint(16, (2, 64))
assert torch.equal(pm.Paramixer.from_pretrained("model")(tokens), model.eval()(tokens))
print("smoke test passed", {name: str(found) for name, found in pm.backends().items()})
"""


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert project["version"] == pm.__version__
    assert f"version: {pm.__version__}" in citation


def test_the_public_names_are_the_contract():
    contract = "Cdil Chord Links Paramixer ParamixerBlock ParamixerConfig backend backends link_mix paramix preset"
    assert set(contract.split()) <= set(pm.__all__)
    assert all(getattr(pm, name).__doc__ for name in pm.__all__)


def test_tasks_load_when_first_touched():
    program = "import sys, paramixer as pm; assert 'paramixer.data' not in sys.modules; pm.data; pm.nothing"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "has no attribute 'nothing'" in ended.stderr


def test_importing_brings_in_torch_and_nothing_heavier():
    program = SMOKE.splitlines()[1:5]
    code = "\n".join(line for line in program if "site-packages" not in line)
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment_outside_the_tree(tmp_path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(*command: str | Path) -> str:
        return subprocess.run(
            [str(part) for part in command], cwd=tmp_path, env=environment, check=True, text=True, capture_output=True
        ).stdout

    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "wheels", ROOT)
    (wheel,) = (tmp_path / "wheels").iterdir()
    names = zipfile.ZipFile(wheel).namelist()
    assert "paramixer/py.typed" in names
    assert not [name for name in names if name.startswith(("tests", "docs", "examples"))]
    run(sys.executable, "-m", "venv", tmp_path / "clean")
    python = tmp_path / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    assert "smoke test passed" in run(python, "-c", SMOKE)


@pytest.mark.slow
def test_without_a_compiler_it_installs_and_says_why_the_engine_is_missing(tmp_path):
    environment = os.environ | {"CXX": "/bin/false", "CC": "/bin/false"}
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, env=environment, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    program = """
import paramixer as pm, torch
print(pm.__file__, pm.backends()["cpu"])
pm.ParamixerBlock(8, 4, 4)(*torch.ones(2, 1, 8, 4)).sum().backward()
with pm.backend("cpu"):
    pm.ParamixerBlock(8, 4, 4)(*torch.ones(2, 1, 8, 4))
"""
    # Without site, the project's own editable install stays out of the way.
    paths = os.pathsep.join([str(tmp_path / "installed"), sysconfig.get_path("purelib")])
    ended = subprocess.run(
        [sys.executable, "-S", "-c", program], env=environment | {"PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert str(tmp_path) in ended.stdout
    assert "not available: no C++ compiler was found" in ended.stdout
    assert "backend 'cpu' cannot serve this call: no C++ compiler was found" in ended.stderr
