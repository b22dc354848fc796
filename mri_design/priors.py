"""Kinds of coefficients that are sparse, and of sites on them, by the names that recipes give.

In the package each is a file, of an operator or of a site, and a line at the end of this one; a script of one's own
calls `register_block` and `register_site`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mri_design.registry import Shipped, require_part

BlockMaker = Callable[..., Any]
"""(`SparsityBlock`, `ImageFacts`) -> `Coefficients`, or their operator alone."""
SiteMaker = Callable[..., Any]
"""Rates tau, per standard deviation of the noise, one for all coefficients or one for each -> `Site`."""

BLOCKS: dict[str, BlockMaker] = {}
"""Kinds of coefficients, by the name that `SparsityBlock.kind` and recipes give."""
SITES: dict[str, SiteMaker] = {}
"""Kinds of sites, by the name that `SparsityBlock.site` and recipes give."""


def register_block(kind: str, make: BlockMaker) -> None:
    """Make a kind of coefficients known by a name, for `SparsityBlock` and ``[[prior]]`` of recipes.

    Parameters
    ----------
    kind : str
        Letters, digits and hyphens.
    make : callable
        (`SparsityBlock`, `ImageFacts`) -> `Coefficients`, or the operator alone where that is all.

    Raises
    ------
    InputError
        For another name, or something that cannot be called.
    """
    require_part("block kind", kind, make)
    BLOCKS[kind] = make


def register_site(name: str, make: SiteMaker) -> None:
    """Make a kind of sites known by a name, for `SparsityBlock` and ``[[prior]]`` of recipes.

    Parameters
    ----------
    name : str
        Letters, digits and hyphens.
    make : callable
        Rates tau, per standard deviation of the noise, one for all coefficients or one for each -> `Site`.

    Raises
    ------
    InputError
        For another name, or something that cannot be called.
    """
    require_part("site", name, make)
    SITES[name] = make


register_block("pixels", Shipped("model.sparsity", "pixels"))
register_block("differences", Shipped("model.sparsity", "differences"))
register_block("wavelet", Shipped("model.sparsity", "wavelet"))
register_block("non-local", Shipped("model.sparsity", "non_local"))
register_block("companion", Shipped("model.sparsity", "companion"))
register_block("repeat", Shipped("model.sparsity", "repeat"))
register_site("laplace", Shipped("potentials.priors", "Laplace"))
register_site("student-t", Shipped("model.sparsity", "student_t"))
register_site("sech2", Shipped("potentials.priors", "Sech2"))
