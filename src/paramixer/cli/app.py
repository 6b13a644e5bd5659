"""Which commands there are. Each is imported when it is called, so that help costs no more than this library."""

from __future__ import annotations

from cyclopts import App, Group, Parameter

from paramixer import __version__

# Name, summary and example of each command, by group.
_COMMANDS = {
    "Train and use a model": (
        (
            "train",
            "Train a model on a task or on a file of your own.",
            "paramixer train reviews.csv --text review --label stars --minutes 10",
        ),
        ("evaluate", "Measure the model of a run again.", "paramixer evaluate runs/reviews-1"),
        (
            "predict",
            "Predict every sequence of a file with the model of a run.",
            "paramixer predict runs/reviews-1 new.csv --out predictions.csv",
        ),
        (
            "explain",
            "Explain the answer to one sequence: a picture and a page.",
            "paramixer explain runs/reviews-1 --index 3",
        ),
        (
            "report",
            "Write one page about a run, or about several side by side.",
            "paramixer report runs/reviews-1 runs/reviews-2 --out both.html",
        ),
        (
            "export",
            "Write the model of a run as a file that runs without this package.",
            "paramixer export runs/reviews-1 --format onnx",
        ),
    ),
    "Data and models": (
        ("models", "List the models that paramixer train --model can train.", "paramixer models --length 4096"),
    ),
    "This machine": (
        ("bench", "Time one chain on this machine with every implementation.", "paramixer bench --length 4096"),
        (
            "cost",
            "Predict operations, memory and time of a chain without running it.",
            "paramixer cost --length 1000000 --batch 1",
        ),
    ),
}
_DATA_COMMANDS = (
    ("list", "list_tasks", "List every task, and whether its data is available.", "paramixer data list"),
    (
        "prepare",
        "prepare",
        "Read the data of a task into the cache, once, and print what it is made of.",
        "paramixer data prepare reviews.csv --text review --label stars",
    ),
)


def build_app() -> App:
    """Return the parser of all commands."""
    groups = {title: Group.create_ordered(title) for title in _COMMANDS}
    app = App(
        name="paramixer",
        help="Very long sequences made ordinary.",
        version=f"paramixer {__version__}",
        default_parameter=Parameter(negative=()),
        group_commands=Group.create_ordered("Options"),
        help_format="plaintext",
        help_epilogue="Details: paramixer COMMAND --help",
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for title, commands in _COMMANDS.items():
        for place, (name, summary, example) in enumerate(commands):
            app.command(
                f"paramixer.cli.commands.{name}:{name}",
                name=name,
                group=groups[title],
                sort_key=place,
                help=summary,
                help_epilogue=f"Example: {example}",
            )
    data = App(
        name="data",
        group=groups["Data and models"],
        group_commands=Group("Commands"),
        help="List the tasks, or prepare the data of one.",
        help_epilogue="Details: paramixer data COMMAND --help",
    )
    for name, function, summary, example in _DATA_COMMANDS:
        data.command(
            f"paramixer.cli.commands.data:{function}", name=name, help=summary, help_epilogue=f"Example: {example}"
        )
    app.command(data)
    return app
