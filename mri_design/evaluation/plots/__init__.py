"""Figures of results; the only place that imports the plotting library.

Names are looked up when first used: the library takes a third of a second to import, and runs without a report draw
nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mri_design.evaluation.plots.curves import *  # noqa: F403
    from mri_design.evaluation.plots.families import *  # noqa: F403
    from mri_design.evaluation.plots.images import *  # noqa: F403
    from mri_design.evaluation.plots.kspace import *  # noqa: F403
    from mri_design.evaluation.plots.panels import *  # noqa: F403

_MODULES = ("panels", "images", "kspace", "curves", "families")
"""In the order in which a name is looked for; the first does not need the library."""


def __getattr__(name: str) -> object:
    for module in () if name.startswith("_") else _MODULES:
        found = getattr(import_module(f"{__name__}.{module}"), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
