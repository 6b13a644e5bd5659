"""``paramixer models``."""

# No postponed annotations: the command line reads the types of the parameters.
from paramixer.cli.flags import Switch


def models(*, preset: str = "order", length: int = 1024, match: Switch = False) -> None:
    """List the models that paramixer train --model can train.

    Args:
        preset: Count the parameters with the sizes of this preset of the paper.
        length: N, for the same count.
        match: Size the baselines to as many parameters as Paramixer has.
    """
    from paramixer import recipes
    from paramixer.baselines import registry
    from paramixer.cli.console import CommandConsole, make_table
    from paramixer.nn.model import Paramixer
    from paramixer.training.factory import count_parameters

    paramixer = recipes.preset(preset, length=length)
    parameters = count_parameters(Paramixer(paramixer, init=None))
    console = CommandConsole()
    table = make_table("name", "system", "parameters", "work per position", numbers=("parameters",))
    table.add_row("paramixer", "Paramixer", str(parameters), "log² N with CHORD, log N with CDIL")
    limitations = {}
    for name, baseline in registry.BASELINES.items():
        if baseline.limitations:
            limitations[name] = baseline.limitations
        if baseline.missing_packages:
            count = "not installed"
        elif baseline.closed_form and paramixer.vocabulary is None:
            count = ""
        else:
            config = registry.configure(name, paramixer, preset, {})
            if match and not baseline.closed_form:
                config = registry.match_parameters(config, parameters)
            count = str(registry.count_parameters(config))
        table.add_row(name, baseline.title, count, baseline.cost)
    console.print(table)
    for name, limitation in limitations.items():
        console.print(f"{name}: {limitation}", markup=False, highlight=False)
    console.print(
        f"Parameters of the whole network with the preset {preset} at N = {length}; work per position as N grows. "
        "What is not installed comes with: pip install 'paramixer[baselines]'",
        style="dim",
        markup=False,
        highlight=False,
    )
