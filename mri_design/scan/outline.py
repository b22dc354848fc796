"""What a Cartesian scan holds, told from its headers and the samples of one slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.dynamic_range import refused_samples
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.sampling import Sampling


@dataclass(frozen=True)
class ScanOutline:
    """A scan of which one slice was read, or all that is to be told of one that was read as a whole.

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
    card : mapping of str to str
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
    card: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shapes = {sampling.samples.shape for sampling in self.samplings}
        if len(shapes) != 1 or not 0 <= self.index < len(self.samplings):
            got = f"slice {self.index} of {len(self.samplings)} slices of {len(shapes)} sizes"
            raise InputError(field="outline", got=got, wanted="slices of one size, and one of them")
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
    def of(cls, scan: KSpaceData) -> ScanOutline:
        """Of a scan that was read as a whole."""
        index = middle_slice(scan.samplings)
        return cls(
            scan.samplings,
            scan.n_coils,
            name=scan.name,
            index=index,
            part=scan if scan.n_slices == 1 else scan.select_slice(index),
            geometry=scan.geometry,
            refused=refused_samples(scan.kspace),
            card=scan.card,
        )


def middle_slice(samplings: Sequence[Sampling]) -> int:
    """The slice nearest to the middle that holds lines; 0 where none does."""
    held = [number for number, sampling in enumerate(samplings) if sampling.lines.any()]
    return min(held, key=lambda number: abs(number - len(samplings) // 2), default=0)
