"""Errors, interruptions and pipes: what a caller sees, and the exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from paramixer.cli import main
from paramixer.cli.commands import bench as bench_command
from paramixer.cli.commands import cost as cost_command

# Sends Ctrl-C when a module is about to be imported, and goes on, as if the user had pressed the keys just then.
INTERRUPT_AT = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["paramixer", *{words!r}]
from paramixer.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fly", 'Unknown command "fly". Available commands: train'),
        ("trian", 'Did you mean "train"?'),
        ("data lst", 'Did you mean "list"?'),
        ("predict", "RUN requires an argument"),
        ("predict run", "FILE requires an argument"),
        ("evaluate run other", "'other' is one word too many; see paramixer evaluate --help"),
        ("evaluate run --split tset", 'Choose from: "validation", "test". Did you mean "test"?'),
        ("evaluate run --batch 0", "batch=0; it must be at least 1"),
        ("train order --lenth 12", "Unknown option: --lenth. Did you mean --length?"),
        ("train order --length many", 'unable to convert "many" into int'),
        ("train order --out", "--out requires an argument"),
        ("train order --steps 3", "Unknown option: --steps. It is a setting: --set training.steps=VALUE"),
        ("train order --model.hidden 3", "It is a setting: --set model.hidden=VALUE"),
        ("bench --batch 0", "batch=0; it must be at least 1"),
        ("bench --rounds 0", "rounds=0; it must be at least 1"),
        ("bench --only rools --quick", "there is no implementation 'rools'; choose from paramixer, rolls"),
        ("cost --protocol ring", 'Invalid value "ring" for --protocol'),
        ("cost --length 1", "length 1 leaves nothing to link"),
        ("cost --checkpoint-every 0", "checkpoint_every=0; it must be positive"),
        ("cost --backend abacus", "there is no cost model for backend 'abacus'"),
        ("models --preset ordre", "ordre"),
        ("report", "name at least one run folder"),
        ("report nowhere", "nowhere"),
        ("explain nowhere", "nowhere"),
    ],
)
def test_mistakes_are_told_in_one_line(words, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("paramixer: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not list(tmp_path.iterdir())


def test_flags_may_be_written_with_underscores(capsys):
    assert main(["cost", "--length", "64", "--checkpoint_every", "2"]) == 0
    assert "checkpoint every 2" in " ".join(capsys.readouterr().out.split())


def test_a_backend_that_cannot_serve_is_told_in_one_line(monkeypatch, capsys):
    monkeypatch.setenv("PARAMIXER_BACKEND", "triton")
    assert main(["bench", "--quick", "--length", "64"]) == 2
    assert "backend 'triton' cannot serve" in capsys.readouterr().err


def test_interrupting_ends_with_one_line(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(cost_command, "cost", interrupt)
    before = signal.getsignal(signal.SIGINT)
    assert main(["cost"]) == 130
    assert capsys.readouterr().err == "paramixer: interrupted\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_bug_of_ours_keeps_its_traceback(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(bench_command, "bench", fail)
    with pytest.raises(ZeroDivisionError):
        main(["bench"])


def test_a_command_runs_in_a_thread(capfd):
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["cost", "--length", "64"])))
    thread.start()
    thread.join()
    assert codes == [0]


def test_a_call_from_python_keeps_the_callers_handler():
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        handler = signal.getsignal(signal.SIGINT)
        assert main(["--version"]) == 0
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("paramixer.cli.interrupts", "cost"),
        ("paramixer.cli.dispatch", "cost"),
        ("cyclopts", "--help"),
        ("rich.console", "--help"),
        ("paramixer.cli.commands.cost", "cost"),
        ("torch", "cost"),
        ("torch._C", "cost"),
        ("numpy", "cost"),
        ("torch.nn.modules.loss", "cost"),
        ("accelerate", "predict nowhere x.csv"),
        ("accelerate", "evaluate nowhere"),
    ],
)
def test_interrupting_an_import_ends_with_one_line(module, words):
    program = INTERRUPT_AT.format(module=module, words=words.split())
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.stderr == "paramixer: interrupted\n"
    assert ended.returncode == 130


INTERRUPT_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from paramixer.cli.interrupts import handle_interrupts
from paramixer.data.storage.cache import prepare
from paramixer.training.prediction.output import open_writer
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "colorsys":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
def build(folder):
    (folder / "half").write_text("half")
    import colorsys
with handle_interrupts(until_exit=True), open_writer(Path("out.csv")) as write:
    write({"a": "1"})
    prepare("task", {}, build)
"""


def test_interrupting_an_import_leaves_no_file(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPT_WHILE_WRITING],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PARAMIXER_CACHE": str(tmp_path / "cache")},
        timeout=120,
    )
    assert (ended.returncode, ended.stderr) == (130, "paramixer: interrupted\n")
    # The lock of a prepared folder stays.
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".lock"]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.15, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0])
def test_interrupting_at_any_moment_ends_with_one_line(seconds, tmp_path):
    """Once main has begun; before that Python itself is starting."""
    program = "import os; os.write(1, b'x'); from paramixer.cli import main; import sys; sys.exit(main())"
    command = [sys.executable, "-c", program, "train", "order", "--length", "256", "--out", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)
    assert process.stdout is not None
    assert process.stdout.read(1) == b"x"
    threading.Timer(seconds, process.send_signal, [signal.SIGINT]).start()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.decode().count("\n") == 1
    assert errors.decode().startswith("paramixer: ")


def test_a_broken_pipe_is_silent():
    command = f"{sys.executable} -u -m paramixer cost --length 4096 | true"
    ended = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=120
    )
    assert ended.stderr == ""
    assert ended.returncode == 128 + signal.SIGPIPE


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "paramixer", "cost", "--length", "1"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith("paramixer: length 1 leaves nothing to link")
    assert ended.stderr.count("\n") == 1


def test_the_installed_command_is_the_same():
    script = Path(sys.executable).with_name("paramixer")
    ended = subprocess.run([str(script), "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("paramixer ")
