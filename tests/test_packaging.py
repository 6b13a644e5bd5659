"""The package as others get it: its names, its dependencies, its extras, its wheel."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

import paramixer as pm
from paramixer.extras import EXTRAS, describe_missing

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = {"torch", "numpy", "safetensors", "pydantic", "pyyaml"}
CONTRACT = (
    "Cdil Chord Links Paramixer ParamixerBlock ParamixerClassifier ParamixerConfig ParamixerEmbedder ParamixerLayer "
    "ParamixerRegressor TrainingOptions __version__ backend backends build_model build_optimizer clip_gradients data "
    "explain fit "
    "link_mix load paramix preset release_memory resolve"
)
# What works with the core alone.
SMOKE = """
import sys
import paramixer as pm
assert "torch" not in sys.modules
import torch
model = pm.Paramixer(pm.preset("listops", length=64))
loss = torch.nn.functional.cross_entropy(model(torch.randint(16, (4, 64))), torch.tensor([0, 1, 2, 3]))
loss.backward()
model.save_pretrained("model")
tokens = torch.randint(16, (2, 64))
assert torch.equal(pm.Paramixer.from_pretrained("model")(tokens), model.eval()(tokens))
assert pm.explain(model, tokens[0]).answer.shape == (10,)
print("smoke test passed", {name: str(availability) for name, availability in pm.backends().items()})
"""
# None in sys.modules makes every import of a package fail as if it were not installed.
BLOCKED = "import sys; sys.modules.update(dict.fromkeys({blocked!r}))\n"


def names_of(requirements: list[str]) -> set[str]:
    """The names of packages, as the index normalizes them."""
    return {re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in requirements}


def run_blocked(blocked: set[str], program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    code = BLOCKED.format(blocked=blocked) + program
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert PROJECT["version"] == pm.__version__
    assert f"version: {pm.__version__}" in citation


def test_the_public_names_are_the_contract():
    assert set(pm.__all__) == set(CONTRACT.split())
    assert all(getattr(pm, name).__doc__ for name in pm.__all__)
    assert set(pm.__all__) <= set(dir(pm))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pm.nothing


def test_a_public_function_is_not_hidden_by_a_module_of_its_name():
    program = """
import importlib, pkgutil, types
import paramixer as pm
for found in pkgutil.iter_modules(pm.__path__):
    if found.name != "__main__":
        importlib.import_module(f"paramixer.{found.name}")
assert all(name == "data" or not isinstance(getattr(pm, name), types.ModuleType) for name in pm.__all__)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_importing_the_package_imports_nothing_else():
    program = """
import sys
before = set(sys.modules)
import paramixer
new = {name for name in set(sys.modules) - before if not name.startswith("paramixer")} - {"typing", "__future__"}
assert not [name for name in new if name.partition(".")[0] not in sys.stdlib_module_names], new
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_models_bring_in_torch_and_nothing_heavier():
    program = """
import sys
import paramixer as pm
pm.Paramixer, pm.explain, pm.preset, pm.paramix
heavy = {"matplotlib", "pandas", "sklearn", "accelerate", "transformers", "huggingface_hub", "rich", "pyarrow"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_the_core_is_small():
    assert names_of(PROJECT["dependencies"]) == CORE


def test_the_core_works_without_the_extras(tmp_path):
    ended = run_blocked({package for packages in EXTRAS.values() for package in packages}, SMOKE, tmp_path)
    assert "smoke test passed" in ended.stdout, ended.stderr


@pytest.mark.parametrize(
    ("package", "program", "what"),
    [
        ("pyarrow", "import paramixer as pm; pm.data.load('x.csv')", "needs pyarrow"),
        ("accelerate", "import paramixer as pm; pm.fit", "pm.fit needs accelerate"),
        ("sklearn", "import paramixer as pm; pm.ParamixerClassifier", "pm.ParamixerClassifier needs scikit-learn"),
        ("accelerate", "import paramixer as pm; pm.load", "pm.load needs accelerate"),
    ],
)
def test_a_missing_extra_is_one_sentence_that_names_it(package, program, what, tmp_path):
    (tmp_path / "x.csv").write_text("text,label\n" + "a,1\nb,2\n" * 20)
    ended = run_blocked({package}, program, tmp_path)
    last = ended.stderr.strip().splitlines()[-1]
    assert f"{what}, which comes with: pip install 'paramixer[cli]'" in last
    assert ended.returncode == 1


def test_without_extras_help_and_a_star_import_leave_out_what_needs_them(tmp_path):
    program = """
import paramixer as pm, pydoc
from paramixer import *
assert Paramixer is pm.Paramixer and "fit" not in globals()
assert "fit" not in pm.__all__ and "fit" not in dir(pm)
assert "class Paramixer(" in pydoc.render_doc(pm, renderer=pydoc.plaintext)
print("all names loaded")
"""
    ended = run_blocked({package for packages in EXTRAS.values() for package in packages}, program, tmp_path)
    assert "all names loaded" in ended.stdout, ended.stderr


@pytest.mark.parametrize("package", ["accelerate", "pyarrow", "rich", "scipy", "sklearn", "filelock", "platformdirs"])
def test_every_name_in_all_loads_without_a_package(package, tmp_path):
    program = "import paramixer as pm; print([getattr(pm, name) for name in pm.__all__] != [])"
    ended = run_blocked({package}, program, tmp_path)
    assert ended.stdout == "True\n", ended.stderr


def test_a_missing_package_is_named_as_pip_knows_it():
    for extra, packages in EXTRAS.items():
        for package in packages:
            sentence = describe_missing(ModuleNotFoundError(name=package), "this")
            assert names_of([sentence.removeprefix("this needs ")]) <= names_of(PROJECT["optional-dependencies"][extra])


def test_a_model_of_the_hub_without_its_extra_is_one_sentence(tmp_path):
    program = "import paramixer as pm; pm.Paramixer.from_pretrained('owner/model')"
    last = run_blocked({"huggingface_hub"}, program, tmp_path).stderr.strip().splitlines()[-1]
    assert "there is no folder owner/model" in last
    assert "pip install 'paramixer[cli]'" in last


@pytest.mark.parametrize(
    ("package", "words"),
    [("cyclopts", ["--help"]), ("rich", ["data", "list"]), ("accelerate", ["evaluate", "run"])],
)
def test_a_command_without_its_extra_is_one_line(package, words, tmp_path):
    program = f"import sys; from paramixer.cli import main; sys.exit(main({words}))"
    ended = run_blocked({package}, program, tmp_path)
    assert ended.returncode == 2
    assert re.fullmatch(
        rf"paramixer: .* needs {package}, which comes with: pip install 'paramixer\[cli\]'\n", ended.stderr
    )


def test_extras_know_what_each_package_is_imported_as():
    distributions = importlib.metadata.packages_distributions()
    for extra, packages in EXTRAS.items():
        wanted = names_of(PROJECT["optional-dependencies"][extra]) - {"setuptools"}
        # Extras of which the tests need nothing.
        if extra in ("tensorboard", "gpu"):
            assert set(packages) == wanted
            continue
        # An import package may be spread over distributions.
        brought = {name.lower().replace("_", "-") for package in packages for name in distributions[package]}
        assert wanted <= brought, extra
        assert all({name.lower().replace("_", "-") for name in distributions[package]} & wanted for package in packages)


def test_dev_includes_everything_that_the_tests_need():
    assert "paramixer[cli,baselines,audio,onnx]" in PROJECT["optional-dependencies"]["dev"]


def test_the_dependency_table_of_the_docs_is_that_of_the_project():
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.partition("## Dependencies, and why")[2].partition("\n## ")[0]
    documented: dict[str, set[str]] = {}
    for extra, packages in re.findall(r"^\| (\w+) \| ([^|]+) \|", table, re.MULTILINE):
        if extra != "extra":
            documented.setdefault(extra, set()).update(packages.strip().replace("_", "-").lower().split(", "))
    extras = {name: names_of(lines) - {"paramixer"} for name, lines in PROJECT["optional-dependencies"].items()}
    build = names_of(tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"])
    assert documented == {"core": names_of(PROJECT["dependencies"]), "build": build, **extras}


def test_what_the_tests_run_with_is_pinned():
    pinned = names_of([line for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line])
    used = names_of([line for lines in PROJECT["optional-dependencies"].values() for line in lines]) | CORE
    assert used - pinned <= {"paramixer", "setuptools", "tensorboard", "ninja", "selenium"}


def test_nothing_in_the_package_reads_or_writes_pickles():
    for path in Path(pm.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"^\s*(import|from) (pickle|dill|cloudpickle|joblib|shelve|marshal)\b", text, re.MULTILINE)
        assert not re.search(r"torch\.(save|load)\(", text), path
        assert "allow_pickle=True" not in text, path


@pytest.mark.slow
def test_the_core_wheel_works_in_a_clean_environment_outside_the_tree(tmp_path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(*command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        words = [str(part) for part in command]
        return subprocess.run(words, cwd=tmp_path, env=environment, check=check, text=True, capture_output=True)

    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "wheels", ROOT)
    (wheel,) = (tmp_path / "wheels").iterdir()
    names = zipfile.ZipFile(wheel).namelist()
    assert "paramixer/py.typed" in names
    assert "paramixer/recipes/default.yaml" in names
    assert "paramixer/recipes/paper/adding.yaml" in names
    assert {name.partition("/")[0] for name in names} == {"paramixer", f"paramixer-{pm.__version__}.dist-info"}
    assert not [name for name in names if name.startswith("paramixer/ops/csrc")]
    run(sys.executable, "-m", "venv", tmp_path / "clean")
    python = tmp_path / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    place = run(python, "-c", "import paramixer; print(paramixer.__file__)").stdout
    assert "site-packages" in place
    assert "smoke test passed" in run(python, "-c", SMOKE).stdout
    ended = run(tmp_path / "clean" / "bin" / "paramixer", "--help", check=False)
    assert ended.returncode == 2
    assert ended.stderr == (
        "paramixer: the command line needs cyclopts, which comes with: pip install 'paramixer[cli]'\n"
    )
    ended = run(python, "-c", "import paramixer as pm; pm.fit", check=False)
    assert "which comes with: pip install 'paramixer[cli]'" in ended.stderr.splitlines()[-1]


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
