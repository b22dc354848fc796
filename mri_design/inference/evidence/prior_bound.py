"""The variational bound of the prior alone: what overcomplete sites integrate to.

Sites on more coefficients than unknowns have no closed normaliser. The same family that bounds the evidence bounds
it: phi_0 = min over gamma of log|B^H diag(1/gamma) B| + h(gamma). Where all sites of a group are equal the minimum has
one gamma per group, and what is left is log|A_0|, A_0 = sum over groups of pi_g B_g^H B_g: a sum over frequencies where
all rows are shifts of filters, a sum over wavelets where all blocks are wavelets and pixels. Where neither basis is
A_0's own the sum of logs of the diagonal is an upper bound (Hadamard), and the lower of the two is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mri_design.errors import InputError
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array
from mri_design.operators.wavelet import Wavelet
from mri_design.potentials.base import SuperGaussian
from mri_design.potentials.requirements import represented


@dataclass(frozen=True)
class SiteGroup:
    """Sites of one block that share a scale.

    Parameters
    ----------
    block : int
        Number of the block.
    name : str
        For tables.
    members : bool array
        Which of the block's sites, of the shape of its sites.
    """

    block: int
    name: str
    members: Array

    @property
    def count(self) -> int:
        """Number of sites."""
        return int(np.count_nonzero(self.members))


def is_centred(block: SiteBlock) -> bool:
    """Whether every site of a block is an even function of its coefficient, around zero."""
    return block.offset is None and "g" in block.offers and not np.any(block.potential.shift)


def site_groups(model: GeneralizedLinearModel, labels: dict[str, Array] | None = None) -> tuple[SiteGroup, ...]:
    """One group for each set of equal scales of a block and each wavelet level, or for each of a block's ``labels``.

    Likelihoods have none, nor have blocks whose sites are not centred (`is_centred`).

    Raises
    ------
    InputError
        For more than 32 groups in a block, labels of a block that is not there, or of another shape.
    """
    names = [block.name for block in model.blocks]
    if len(set(names)) < len(names):
        raise InputError("blocks", f"names {names}", "a name of its own for each, to learn its scale")
    given = dict(labels or {})
    groups: list[SiteGroup] = []
    for number, block in enumerate(model.blocks):
        if block.is_likelihood or not is_centred(block):
            continue
        if block.name in given:
            wanted = np.asarray(given.pop(block.name))
            if wanted.shape != block.site_shape:
                raise InputError(f"labels of {block.name!r}", f"shape {wanted.shape}", f"{block.site_shape}")
        elif isinstance(block.analysis, Wavelet):
            wanted = block.analysis.level_map()
        else:
            wanted = np.broadcast_to(np.asarray(block.potential.start_variance), block.site_shape)
        kinds = np.unique(wanted)
        if len(kinds) > 32:
            raise InputError(
                f"block {block.name!r}",
                f"{len(kinds)} different scales",
                "at most 32 to learn",
                "Give labels that say which sites share one.",
            )
        for i, kind in enumerate(kinds):
            name = block.name if len(kinds) == 1 else f"{block.name} {i}"
            groups.append(SiteGroup(number, name, wanted == kind))
    if given:
        raise InputError("labels", f"{sorted(given)}", f"{[b.name for b in model.blocks]}")
    return tuple(groups)


@dataclass(frozen=True)
class Basis:
    """The diagonals of B_g^H B_g in one orthonormal basis.

    Parameters
    ----------
    diagonals : float array, shape (group, entry)
        Distinct entries.
    multiplicity : float array, shape (entry,)
        How often each occurs.
    """

    diagonals: Array
    multiplicity: Array

    def log_determinant(self, pi: Array) -> float:
        """log of the product of A_0's diagonal: at least log|A_0|."""
        return float(self.multiplicity @ np.log(pi @ self.diagonals))

    def traces(self, pi: Array) -> Array:
        """Its derivative by pi: tr(B_g A_0^-1 B_g^H) per group."""
        return np.asarray((self.diagonals / (pi @ self.diagonals)) @ self.multiplicity)


@dataclass(frozen=True)
class PriorEvidence:
    """phi_0 of a model's sites, with one pi per group.

    Parameters
    ----------
    model : GeneralizedLinearModel
        Its blocks are used, not its data.
    groups : tuple of SiteGroup
        From `site_groups`.
    bases : tuple of Basis
        Candidates for A_0's own.
    """

    model: GeneralizedLinearModel
    groups: tuple[SiteGroup, ...]
    bases: tuple[Basis, ...]

    @classmethod
    def of(cls, model: GeneralizedLinearModel, groups: tuple[SiteGroup, ...]) -> PriorEvidence:
        """Bases from the operators: frequencies, and the wavelets of every wavelet block.

        Raises
        ------
        InputError
            For operators whose Gram matrices are not known as circulants, or sites that leave a direction free.
        """
        spectra = np.array([_spectrum(model.blocks[group.block], group) for group in groups])
        total = spectra.sum(axis=0)
        if total.min() <= 1e-12 * total.max():
            raise InputError(
                "prior",
                "sites that leave a direction of the image free",
                "a proper prior, for its scales to be learnt",
                "Add a block of sites on the pixels.",
            )
        own = sorted({group.block for group in groups})
        bases = [Basis(spectra.reshape(len(groups), -1), np.ones(total.size))]
        bases += [_wavelet_basis(model, groups, spectra, b) for b in own if _is_basis(model, b)]
        return cls(model, groups, tuple(bases))

    def __call__(self, blocks: Sequence[SiteBlock], rounds: int = 200) -> tuple[float, Array]:
        """phi_0 for these blocks (the model's, with other scales), and its derivatives by the logs of the rates.

        Notes
        -----
        The double loop without data: z = tr(B_g A_0^-1 B_g^H) / sites, pi = -2 g'(z), in turn.
        """
        minima = [self._minimum(blocks, basis, rounds) for basis in self.bases]
        return min(minima, key=lambda minimum: minimum[0])

    def _minimum(self, blocks: Sequence[SiteBlock], basis: Basis, rounds: int) -> tuple[float, Array]:
        components = 2 if self.model.measurement.in_complex else 1
        counts = np.array([group.count for group in self.groups])
        sites = [_one_site(blocks[group.block], group) for group in self.groups]
        z = np.array([float(np.asarray(site.start_variance)) for site in sites])
        for _ in range(rounds):
            pi = np.array([float(site.site_precision(np.asarray(z_g))) for site, z_g in zip(sites, z, strict=True)])
            renewed = components * basis.traces(pi) / counts
            done = bool(np.all(np.abs(renewed - z) <= 1e-9 * z))
            z = renewed
            if done:
                break
        dual = [float(site.h_at_optimum(np.asarray(z_g))) for site, z_g in zip(sites, z, strict=True)]
        pi = np.array([float(site.site_precision(np.asarray(z_g))) for site, z_g in zip(sites, z, strict=True)])
        return components * basis.log_determinant(pi) + float(counts @ dual), 2 * counts * pi * z


def _one_site(block: SiteBlock, group: SiteGroup) -> SuperGaussian:
    """The potential of one site of a group, whose scales are equal."""
    place = tuple(int(i[0]) for i in np.nonzero(group.members))
    return represented(block.potential.at(place, block.site_shape), f"block {block.name!r}")


def _is_basis(model: GeneralizedLinearModel, number: int) -> bool:
    """True where a block's rows are an orthonormal basis of shifted filters, and not the pixels."""
    bands = model.blocks[number].analysis.filter_bands()
    return bands is not None and len(bands) > 1 and sum(1 / band.stride**2 for band in bands) == 1


def _wavelet_basis(model: GeneralizedLinearModel, groups: tuple[SiteGroup, ...], spectra: Array, number: int) -> Basis:
    """Diagonals in the basis of a block of wavelets; every band's wavelets are shifts of one."""
    bands = model.blocks[number].analysis.filter_bands() or ()
    sizes = np.array([spectra[0].size / band.stride**2 for band in bands])
    diagonals = np.empty((len(groups), len(bands)))
    for g, group in enumerate(groups):
        for b, band in enumerate(bands):
            if group.block == number:
                diagonals[g, b] = np.mean(group.members[band.band])
            else:
                diagonals[g, b] = band.mean_power(spectra[g])
    return Basis(diagonals, sizes)


def _spectrum(block: SiteBlock, group: SiteGroup) -> Array:
    weights = np.broadcast_to(group.members, block.analysis.out_shape).astype(float)
    spectrum = block.analysis.circulant_spectrum(weights)
    if spectrum is None:
        raise InputError(
            f"block {block.name!r}",
            f"{type(block.analysis).__name__}, whose Gram matrix is not known as a circulant",
            "pixels, differences or wavelets of an image",
        )
    return np.asarray(spectrum, dtype=float)
