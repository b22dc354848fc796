"""Header summaries of files of scans and of images, made without holding all of their samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import ImageStack, KSpaceData, TrajectoryData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.sampling import Sampling, refused_samples
from mri_design.scan.source_image import SourceImage


@dataclass(frozen=True)
class ScanSummary:
    """Header summary of a scan: the sampling of every slice, and the samples of one.

    Parameters
    ----------
    samplings : tuple of Sampling
        Per slice, which samples were measured: that of the slice that was read from its samples, those of the others
        from their headers where ``by_headers`` is true.
    n_coils : int
        Receive coils.
    name : str
        Short name of the scan.
    index : int
        The slice whose samples were read: the one nearest to the middle that has any.
    part : KSpaceData, optional
        That slice; None where its readouts hold zeros only, as in a file of labels without data.
    geometry : tuple of SliceGeometry, optional
        Size and place of every slice; None where the file does not say.
    by_headers : bool
        Whether the samples of other slices were not looked at.
    refused : str
        Why no receiver can have measured the samples (`refused_samples`); by default it is said of ``part``.
    header : mapping of str to str
        Provenance.

    Raises
    ------
    InputError
        Without slices, for slices of different sizes, or an index that is none of theirs.
    """

    samplings: tuple[Sampling, ...]
    n_coils: int
    _: KW_ONLY
    name: str = "scan"
    index: int = 0
    part: KSpaceData | None = None
    geometry: tuple[SliceGeometry, ...] | None = None
    by_headers: bool = False
    refused: str = ""
    header: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shapes = {sampling.samples.shape for sampling in self.samplings}
        if len(shapes) != 1 or not 0 <= self.index < len(self.samplings):
            got = f"slice {self.index} of {len(self.samplings)} slices of {len(shapes)} sizes"
            raise InputError(field="summary", got=got, wanted="slices of one size, and one of them")
        if self.part is not None and self.part.kspace.shape[:1] + self.part.grid_shape != (1, *shapes.pop()):
            raise InputError(field="part", got=f"{self.part.kspace.shape}", wanted="one slice of the grid")
        if self.part is not None and not self.refused:
            object.__setattr__(self, "refused", refused_samples(self.part.kspace))

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return len(self.samplings)

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Grid (ky, kx)."""
        ky, kx = self.samplings[0].samples.shape
        return ky, kx

    @classmethod
    def of(cls, scan: KSpaceData) -> ScanSummary:
        """Summarise a scan that was read as a whole."""
        index = middle_slice(scan.samplings)
        return cls(
            scan.samplings,
            scan.n_coils,
            name=scan.name,
            index=index,
            part=scan if scan.n_slices == 1 else scan.select_slice(index),
            geometry=scan.geometry,
            refused=refused_samples(scan.kspace),
            header=scan.header,
        )


def summarised(held: KSpaceData | TrajectoryData | ImageStack) -> ScanSummary | TrajectoryData | ImageSummary:
    """Summarise what a reader read as a whole; samples along a trajectory are their own summary."""
    if isinstance(held, ImageStack):
        return ImageSummary.of(held)
    return ScanSummary.of(held) if isinstance(held, KSpaceData) else held


def middle_slice(samplings: Sequence[Sampling]) -> int:
    """The slice nearest to the middle that holds lines; 0 where none does."""
    held = [number for number, sampling in enumerate(samplings) if sampling.lines.any()]
    return min(held, key=lambda number: abs(number - len(samplings) // 2), default=0)


Image = NDArray[np.float32] | NDArray[np.complex64]


@dataclass(frozen=True)
class ImageSummary:
    """Header summary of images which need not be held together.

    Parameters
    ----------
    shape : tuple of int
        Images, rows and columns.
    values : tuple of float
        The smallest and the largest value; of complex images, 0 and the largest modulus.
    has_phase : bool
        Whether the images are complex.
    name : str
        Short name.
    header : mapping of str to str
        Provenance.
    geometry, source : optional
        As of an `ImageStack`.

    Raises
    ------
    InputError
        For images that are zero everywhere.
    """

    shape: tuple[int, int, int]
    values: tuple[float, float]
    _: KW_ONLY
    has_phase: bool = False
    name: str = "images"
    header: Mapping[str, str] = field(default_factory=dict)
    geometry: SliceGeometry | None = None
    source: SourceImage | None = None

    def __post_init__(self) -> None:
        if self.values == (0, 0):
            raise InputError(field="images", got="all zeros", wanted="at least one non-zero pixel")

    @classmethod
    def of(cls, stack: ImageStack) -> ImageSummary:
        """Summarise images that were read as a whole."""
        count, rows, columns = stack.images.shape
        told = {"name": stack.name, "header": stack.header, "geometry": stack.geometry, "source": stack.source}
        return cls.of_images(stack.images, (count, rows, columns), **told)

    @classmethod
    def of_images(cls, images: Iterable[Image], shape: tuple[int, int, int], **told: Any) -> ImageSummary:
        """Summarise images (row, column) that come one by one; ``told`` are name, header, geometry and source."""
        low, high, has_phase = np.inf, -np.inf, False
        for image in images:
            has_phase = np.iscomplexobj(image)
            values = np.abs(image) if has_phase else image
            low, high = min(low, float(values.min())), max(high, float(values.max()))
        return cls(shape, (0.0 if has_phase else low, high), has_phase=has_phase, **told)
