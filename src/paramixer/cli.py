"""The command ``paramixer``: parse, call, print. Every command's options are a dataclass whose fields are its flags."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jsonargparse
from rich.console import Console

import paramixer
from paramixer.bench import block, cost, figures, limits, memory, models, record, scaling, step, tables
from paramixer.bench import training as overhead
from paramixer.bench.case import Case
from paramixer.bench.progress import shown
from paramixer.bench.run import run
from paramixer.bench.settings import threads
from paramixer.data import command as data
from paramixer.machine import serving_engine
from paramixer.nn.config import ParamixerConfig
from paramixer.nn.pretrained import replace_file
from paramixer.report.command import ExplainOptions, ReportOptions, explain_answer, report
from paramixer.reproduce.command import ReproduceOptions, reproduce
from paramixer.training import command as training
from paramixer.training.factory import DECIDED
from paramixer.training.fit import TrainingError
from paramixer.training.models import ModelsOptions, show_models
from paramixer.training.prediction import PredictOptions, predict

jsonargparse.set_parsing_settings(docstring_parse_attribute_docstrings=True)

# The caller's mistakes, and what a machine may lack; everything else is ours and deserves its traceback.
_USER_ERRORS = (ValueError, OSError, jsonargparse.ArgumentError, TrainingError)


_MODEL = ("--model", "--model.mixer")


@dataclass(frozen=True)
class Command:
    """A command: what its flags are and what it does with them."""

    options: type
    call: Callable[[Any, Console], object]
    extend: Callable[[jsonargparse.ArgumentParser], None] | None = None
    """Adds what a dataclass cannot say; the fields of these names are not added by themselves."""
    extended: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CostOptions(Case):
    """Operations, bytes, predicted time and memory of a chain, without running it."""

    keep: int = 1
    """Training keeps every keep-th factor's input and recomputes the others."""
    engine: str | None = None
    """The engine to predict for, cpu or reference; None for the one that serves here."""
    gflops: float | None = None
    """The machine's GEMM peak in GFLOP/s; None for that of two cores with AVX2."""
    bandwidth: float | None = None
    """The machine's memory bandwidth in GB/s; None for that of two cores."""
    measure: bool = False
    """Measure this machine's limits first, for a better prediction of the time."""
    threads: int | None = None
    """Threads for that measurement; None for torch's default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("keep", "gflops", "bandwidth", "threads"):
            number = getattr(self, name)
            if number is not None and number <= 0:
                raise ValueError(f"{name}={number}; it must be positive")


@dataclass(frozen=True)
class ShowOptions:
    """Print the tables of a record, or put them into a page of the docs."""

    record: Path
    """The JSON file that a benchmark wrote."""
    into: Path | None = None
    """A markdown page with the markers <!-- bench WHAT --> and <!-- end -->, to be updated."""


def print_cost(options: CostOptions, console: Console) -> None:
    """``paramixer cost``."""
    found = limits.DEFAULT
    if options.measure:
        with threads(options.threads), shown(console) as say:
            found = limits.measure(say)
    found = limits.Limits(
        flops=1e9 * options.gflops if options.gflops else found.flops,
        bandwidth=1e9 * options.bandwidth if options.bandwidth else found.bandwidth,
    )
    document = cost.document(options, options.engine or serving_engine(), found, options.keep)
    console.print(tables.drawn(tables.cost_table(document)))
    console.print(
        f"Times for a GEMM peak of {found.flops / 1e9:.0f} GFLOP/s and {found.bandwidth / 1e9:.1f} GB/s to memory; "
        "memory beyond the process's own.",
        style="dim",
        highlight=False,
    )


def show(options: ShowOptions, console: Console) -> None:
    """``paramixer bench show``."""
    found = record.read(options.record)
    if options.into is None:
        console.print(tables.on_terminal(found))
        return
    replace_file(options.into, tables.insert(options.into.read_text(encoding="utf-8"), found).encode())
    console.print(f"updated {options.into} from {options.record}", highlight=False, soft_wrap=True)


def _extend_train(parser: jsonargparse.ArgumentParser) -> None:
    """A task that may be left out, a config file, and every field of the model's config that the data leaves open."""
    # Suppressed, or its absence would overrule the task of a config file.
    absent = argparse.SUPPRESS
    parser.add_argument("task", nargs="?", type=str, default=absent, help="A task's name, or a file of your own.")
    parser.add_argument("--config", action="config", help="A YAML file with any of these settings.")
    parser.add_class_arguments(ParamixerConfig, "model", skip=set(DECIDED))
    short = parser._option_string_actions["--model"]
    short.metavar, short.help = "NAME", f"Short for {_MODEL[1]}; see paramixer models."
    # Nothing said is the preset's, whatever the dataclass has.
    fields = [action.dest for action in parser._actions if action.dest.startswith("model.")]
    parser.set_defaults(dict.fromkeys(fields))


def _extend_report(parser: jsonargparse.ArgumentParser) -> None:
    """One run or several, as they come."""
    parser.add_argument("runs", nargs="+", type=Path, help="Run folders.")


Commands = dict[str, Command | dict[str, Command]]
COMMANDS: Commands = {
    "bench": {
        "block": Command(block.BlockOptions, partial(run, "block", block.measure)),
        "scaling": Command(scaling.ScalingOptions, partial(run, "scaling", scaling.measure)),
        "memory": Command(memory.MemoryOptions, partial(run, "memory", memory.measure)),
        "step": Command(step.StepOptions, partial(run, "step", step.measure)),
        "training": Command(overhead.TrainingBenchOptions, partial(run, "training", overhead.measure)),
        "models": Command(models.ModelsBenchOptions, partial(run, "models", models.measure)),
        "figures": Command(figures.FiguresOptions, partial(run, "figures", figures.measure)),
        "show": Command(ShowOptions, show),
    },
    "cost": Command(CostOptions, print_cost),
    "train": Command(training.TrainOptions, training.train, _extend_train, ("task", "model")),
    "evaluate": Command(training.EvaluateOptions, training.evaluate),
    "predict": Command(PredictOptions, predict),
    "explain": Command(ExplainOptions, explain_answer),
    "report": Command(ReportOptions, report, _extend_report, ("runs",)),
    "reproduce": Command(ReproduceOptions, reproduce),
    "models": Command(ModelsOptions, show_models),
    "data": {
        "list": Command(data.ListOptions, data.show_list),
        "prepare": Command(data.PrepareOptions, data.prepare),
    },
}
_GROUPS = {
    "bench": "Speed, memory and scaling of the engines, written down as records.",
    "data": "The tasks and your own files, read and prepared once.",
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command. Returns 0, or 2 for a mistake of the caller, which is told in one line, or 130 after Ctrl-C."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        parsed = parse(words)
        command, flags = _chosen(COMMANDS, parsed)
        command.call(command.options(**flags), Console())
    except SystemExit as leaving:
        # After --help.
        return leaving.code if isinstance(leaving.code, int) else 0
    except KeyboardInterrupt as wish:
        print(f"paramixer: {str(wish) or 'interrupted'}", file=sys.stderr)
        return 130
    except _USER_ERRORS as error:
        print(f"paramixer: {_plainly(str(error))}{_nearest(str(error), words)}", file=sys.stderr)
        return 2
    return 0


_KINDS = {"int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "Path": "a path"}
_KINDS |= {"tuple": "a list such as [a,b]", "list": "a list such as [a,b]"}


def _plainly(error: str) -> str:
    """One line, and jsonargparse's talk of types as a sentence."""
    line = " ".join(error.split())
    found = re.match(r'Parser key "([\w.]+)": (.*?)(?:Given value|Got value): (.*)$', line)
    if found is None:
        return line
    key, types, value = found.groups()
    types = types.partition("Given value type")[0]
    kinds = [_KINDS[name] for name in re.findall(r"<class '(?:\w+\.)*(\w+)'>", types) if name in _KINDS]
    for names in re.findall(r"Literal\[([^\]]*)\]", types):
        choices = [name.strip().strip("'") for name in names.split(",")]
        close = difflib.get_close_matches(value, choices, 1)
        kinds.append(f"one of {', '.join(choices)}{f' (did you mean {close[0]}?)' if close else ''}")
    wanted = " or ".join(dict.fromkeys(kinds))
    return f"{key}={value}; it must be {wanted}" if wanted else line


def parse(words: list[str]) -> jsonargparse.Namespace:
    """What a command line says."""
    return parser().parse_args(_config_first([_spelled_out(word) for word in words]))


def _config_first(words: list[str]) -> list[str]:
    """Files of settings before everything else, so that what is said beside them counts, wherever it stands."""
    files: list[str] = []
    rest: list[str] = []
    ahead = iter(words)
    for word in ahead:
        if word == "--config":
            files += [word, *([value] if (value := next(ahead, None)) is not None else [])]
        else:
            (files if word.startswith("--config=") else rest).append(word)
    # After the command's own word.
    return [*rest[:1], *files, *rest[1:]]


def _spelled_out(word: str) -> str:
    """``--model NAME`` names the mixer; by itself jsonargparse would expect a file with all of the model's fields."""
    short, written, name = word.partition("=")
    return f"{_MODEL[1]}{written}{name}" if short == _MODEL[0] else word


def _nearest(error: str, arguments: list[str]) -> str:
    """The flag that a mistyped one may have meant."""
    found = re.search(r"unrecognized arguments: (--[\w.]+)", error)
    if found is None:
        return ""
    words = [word for word in arguments if not word.startswith("-")]
    command: Any = COMMANDS
    whole = parser()
    for word in words:
        if isinstance(command, dict) and word in command:
            command = command[word]
            whole = whole._subcommands_action.choices[word]  # type: ignore[union-attr]
    known = [flag for action in whole._actions for flag in action.option_strings if flag.startswith("--")]
    close = difflib.get_close_matches(found[1], known, 1)
    return f"; did you mean {close[0]}?" if close else ""


def parser() -> jsonargparse.ArgumentParser:
    """The parser of all commands."""
    whole = jsonargparse.ArgumentParser(
        prog="paramixer",
        exit_on_error=False,
        description="Very long sequences made ordinary.",
        version=paramixer.__version__,
    )
    _add(whole, COMMANDS)
    return whole


def _add(parser: jsonargparse.ArgumentParser, commands: Commands) -> None:
    """Give the parser these commands; groups of them get parsers of their own."""
    subcommands = parser.add_subcommands(dest="command")
    for word, command in commands.items():
        described = _GROUPS[word] if isinstance(command, dict) else (command.options.__doc__ or "").splitlines()[0]
        below = jsonargparse.ArgumentParser(exit_on_error=False, description=described)
        subcommands.add_subcommand(word, below, help=described)
        if isinstance(command, dict):
            _add(below, dict(command))
        else:
            if command.extend is not None:
                command.extend(below)
            below.add_class_arguments(command.options, as_positional=True, as_group=False, skip=set(command.extended))
            _make_switches(below)


def _make_switches(parser: jsonargparse.ArgumentParser) -> None:
    """``--quick`` alone means ``--quick true``."""
    for action in parser._actions:
        # Where nothing said is neither yes nor no, the default is None.
        if action.option_strings and (action.default is False or getattr(action, "_typehint", None) == bool | None):
            action.nargs, action.const = "?", True


def _chosen(commands: Commands, parsed: jsonargparse.Namespace) -> tuple[Command, dict[str, Any]]:
    command, rest = commands[parsed.command], parsed[parsed.command]
    if isinstance(command, dict):
        return _chosen(dict(command), rest)
    flags = vars(rest)
    flags.pop("config", None)
    if "model" in flags:
        flags["model"] = {name: value for name, value in vars(flags["model"]).items() if value is not None}
    return command, flags
