"""A run of a network that is built here and not by its recipe alone; the package trains it and cannot resume it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paramixer.data.task import Task
from paramixer.nn.pretrained import PretrainedModel
from paramixer.training.callback import Callback, Interrupted
from paramixer.training.fit import fit
from paramixer.training.optimizer import ParameterGroup
from paramixer.training.recipe import Resolved
from paramixer.training.runs.folder import RunFolder
from paramixer.training.runs.record import Outcome
from paramixer.training.runs.run import RunSettings

_RESUME = "python -m experiments"


def train(
    model: PretrainedModel,
    task: Task,
    settings: RunSettings,
    resolved: Resolved,
    folder: Path,
    *,
    init: dict[str, Any] | None = None,
    parameter_groups: Sequence[ParameterGroup] | None = None,
    callbacks: Sequence[Callback] = (),
    test: bool = True,
) -> Outcome:
    """Train in a run folder, or go on with the run that is there, to the bit as if it had not been interrupted.

    Args:
        model: the new, initialized model; a checkpoint's weights replace its own.
        task: the data.
        settings: of the run, with absolute paths.
        resolved: what they became.
        folder: of the run.
        init: how the model was initialized, where the package does not know.
        parameter_groups: as in :func:`paramixer.fit`.
        callbacks: called after the loop's own.
        test: whether the model is evaluated on test in the end.
    """
    complete = dataclasses.replace(settings.complete(resolved), resume_with=_RESUME)
    if init is not None:
        complete = dataclasses.replace(complete, init=init)
    try:
        return fit(
            model,
            task,
            resolved,
            folder=folder,
            seed=settings.seed,
            resume=RunFolder(folder).config.is_file(),
            callbacks=callbacks,
            settings=complete.document(),
            parameter_groups=parameter_groups,
            test=test,
        )
    except Interrupted as error:
        raise Interrupted(f"stopped by {error}; go on with: {_RESUME}") from None
