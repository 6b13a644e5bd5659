"""``paramixer data list`` and ``paramixer data prepare``."""

# No postponed annotations: the command line reads the types of the parameters.
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from paramixer.cli.data_options import DataOptions, name_sources


def list_tasks() -> None:
    """List every task: its length, its classes, where its data comes from, and whether that is available."""
    from paramixer.cli.console import CommandConsole, make_table
    from paramixer.data import registry
    from paramixer.data.storage import cache
    from paramixer.data.storage.prepared import count_prepared

    console = CommandConsole()
    narrow = {"N": 14, "classes": 9, "available": 12}
    table = make_table("task", "what", "N", "classes", "available", widths=narrow)
    prepared = count_prepared()
    origins, sources = {}, {}
    for name, definition in registry.definitions().items():
        available = ["generated"] if definition.generated else []
        if source := registry.find_local(name):
            available.append("found")
            sources[name] = source
        if name in prepared:
            available.append(f"prepared {prepared[name]}x")
        if not definition.generated:
            origins[name] = definition.origin
        table.add_row(name, definition.title, definition.length, definition.classes, ", ".join(available) or "no")
    console.print(table)
    console.print_line("Where the data of the others comes from (give it with --source PATH):")
    for name, origin in origins.items():
        console.print(f"  {name}: {origin}", highlight=False, markup=False)
    for name, source in sources.items():
        console.print_line(f"found for {name}: {source}")
    console.print_line(f"Prepared data is in {cache.find_folder()}", style="dim")


def prepare(
    task: str,
    /,
    *files: str,
    options: Annotated[DataOptions | None, Parameter(name="*")] = None,
    seed: int = 0,
    picture: Path | None = None,
) -> None:
    """Read the data of a task into the cache, once, and print what it is made of.

    Args:
        task: A task's name, or a file, a folder or a pattern of files of your own.
        files: More files of the same columns.
        options: The options of the data.
        seed: Seed of generated data and of the splits.
        picture: Where to draw the lengths, .svg or .png. By default a file in the cache.
    """
    from paramixer.cli.console import CommandConsole
    from paramixer.data import registry
    from paramixer.data.progress import show_progress
    from paramixer.data.storage import cache
    from paramixer.data.summary import draw_lengths
    from paramixer.data.summary_table import print_summary

    console = CommandConsole()
    given = options.given() if options is not None else {}
    sources = name_sources(task, files, given.get("source"))
    if files:
        given["source"] = sources["data.source"]
    with show_progress(console) as progress:
        data = registry.load(sources["task"], progress=progress, seed=seed, **given)
    print_summary(data, console)
    place = picture or cache.find_folder() / f"{data.name}-{data.fingerprint[:8]}-lengths.svg"
    place.parent.mkdir(parents=True, exist_ok=True)
    draw_lengths(data, place)
    console.print_line(f"lengths drawn in {place}")
