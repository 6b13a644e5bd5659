"""``paramixer models``: every system there is to train, with what it costs and what it cannot do."""

# No postponed annotations here: the command line reads the fields' types.
import dataclasses
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from paramixer.baselines import ngrams, registry
from paramixer.nn.config import ParamixerConfig
from paramixer.recipes.presets import preset
from paramixer.training.factory import baseline_settings, matched, parameters

_OWN = ("Paramixer", "log² N with CHORD, log N with CDIL", "")


@dataclass(frozen=True)
class ModelsOptions:
    """List the systems that paramixer train --model NAME can train."""

    preset: str = "order"
    """The task whose sizes the parameters are counted for."""
    length: int = 1024
    """N, for the same."""
    match: bool = False
    """Whether rivals are sized to as many parameters as Paramixer has."""


def show_models(options: ModelsOptions, console: Console) -> None:
    """``paramixer models``."""
    own = preset(options.preset, length=options.length)
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("name", "system", "parameters", "work a position, as N grows", "installed", "beware"):
        # Names are to be typed, so they are never cut.
        table.add_column(
            column,
            justify="right" if column == "parameters" else "left",
            no_wrap=column == "name",
            min_width=max(map(len, registry.BASELINES)) if column == "name" else None,
            overflow="fold",
        )
    for name in (registry.OWN, *registry.BASELINES):
        if name == registry.OWN:
            title, cost, cannot = _OWN
            missing: tuple[str, ...] = ()
        else:
            found = registry.baseline(name)
            title, cost, cannot, missing = found.title, found.cost, found.cannot, found.missing
        count = "" if missing or (name == ngrams.NAME and own.vocabulary is None) else str(_count(own, name, options))
        table.add_row(name, title, count, cost, "no" if missing else "yes", Text(cannot))
    console.print(table)
    console.print(
        f"Parameters of the whole network with the preset {options.preset} at N = {options.length}. What is not "
        "installed comes with: pip install 'paramixer[baselines]'",
        style="dim",
        markup=False,
        highlight=False,
    )


def _count(own: ParamixerConfig, name: str, options: ModelsOptions) -> int:
    config = dataclasses.replace(own, mixer=name, **baseline_settings(name, own, options.preset))
    return parameters(matched(config, own) if options.match and name != ngrams.NAME else config)
