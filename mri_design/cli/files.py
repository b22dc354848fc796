"""Verbs about files: info says what is in one, convert, export and mask write another, measure reads off regions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mri_design.cli import flags
from mri_design.cli.terminal import DONE, say, written
from mri_design.errors import InputError, UnknownNameError, UsageError, described
from mri_design.experiment.recipe import Recipe
from mri_design.kinds import designed_kinds, gridded_kinds

if TYPE_CHECKING:
    from mri_design.runs.export import SequenceRequest

SEQUENCES = ("gre", "tse")
CONVERTED = (".npz", ".npy", ".h5", ".mrd", ".cfl", ".nii.gz", ".nii", ".dcm")
FORMATS = ("nifti", "dicom", "cfl", "csv", "npy", "mrd", "seq")
ENDINGS = (".npy", ".cfl", ".csv", ".seq")
_LISTS = {"sequences": SEQUENCES, "endings of files": CONVERTED, "formats": FORMATS, "endings of masks": ENDINGS}
flags.NAMES |= {name: ", ".join(listed) for name, listed in _LISTS.items()}
SEQUENCE = "The sequence (.seq)"
_REQUESTED = ("sequence", "scanner", "resolution", "etl")
"""Options that are no settings of the sequence."""


@dataclass(frozen=True, kw_only=True)
class SequenceFlags:
    """The sequence of a Pulseq file: what is None is that of the scan, or the default.

    Parameters
    ----------
    sequence : NAME
        One of: <sequences>. [default: tse where lines come in trains]
    scanner : NAME|FILE.toml
        Limits: generic, low-field, siemens-skyra, siemens-prisma, or a file. [default: generic]
    echo_time : --te S
        Echo time; of tse the time between echoes. [default: the scan's; 0.010; tse: 0.016]
    repetition_time : --tr S
        Repetition time. [default: the scan's; 0.030; tse: 3]
    flip_angle : --flip DEGREES
        Flip angle; of tse that of the refocusing pulses. [default: the scan's; 15; tse: 180]
    bandwidth : HZ
        Of each pixel of the readout. [default: 250; spirals: the largest]
    resolution : M
        Pixel size along the readout, metres. [default: as the run's image]
    slice_thickness : --thickness M
        Thickness of the slice, metres; of a plane (ky, kz) its extent along kz. [default: the scan's, or 0.005]
    etl : N
        Length of the echo trains of tse: N lines in their order after each excitation. [default: the run's]
    dummies : N
        Excitations before the first measurement. [default: 20; tse: 1]
    rf_spoiling : DEGREES
        Increment of the phase of excitations, gre only. [default: 117]
    """

    sequence: str | None = None
    scanner: str | None = None
    echo_time: float | None = None
    repetition_time: float | None = None
    flip_angle: float | None = None
    bandwidth: float | None = None
    resolution: float | None = None
    slice_thickness: float | None = None
    etl: Annotated[int | None, flags.Within(1, 1024)] = None
    dummies: Annotated[int | None, flags.Within(0)] = None
    rf_spoiling: float | None = None

    def asked_for(self, wanted: bool, what: str) -> SequenceRequest | None:
        """The sequence where one is ``wanted``, whose other settings are the scan's or the defaults; else None.

        Raises
        ------
        UsageError, InputError
            For an unknown kind of sequence, and for an option of a sequence where ``what`` would want one.
        """
        given = {name: value for name, value in vars(self).items() if value is not None}
        if not wanted:
            for name, value in given.items():
                raise InputError(name, described(value), "none", f"It is for {what}.")
            return None
        from mri_design.runs.export import SequenceRequest
        from mri_design.sequences.scanner import load_scanner

        if self.sequence is not None and self.sequence not in SEQUENCES:
            raise UnknownNameError("sequence", self.sequence, SEQUENCES)
        settings = {name: value for name, value in given.items() if name not in _REQUESTED}
        scanner = load_scanner(self.scanner or "generic")
        return SequenceRequest(scanner, self.sequence, settings, self.resolution, self.etl)  # type: ignore[arg-type]


_READING = f"input.matrix {flags.SERIES}"


def info(
    source: str, maps: flags.Maps, *, recipe: Annotated[Recipe, flags.Override(f"{_READING} {flags.NOISE}")]
) -> int:
    """Show matrix, field of view, coils, measured lines and samples, centre, noise and provenance of INPUT.

    Of raw data the samples of one slice are read; the rest is from headers. Images, a Pulseq sequence (.seq) and the
    folder of a run are described as what they are: of a run that is not finished how far it is and how to go on, of a
    folder of runs each.

    Example: mri-design info scan.h5; mri-design info run
    """
    from mri_design.experiment.inputs import require_no_slices
    from mri_design.runs.info import describe_input

    require_no_slices(source, "info tells about all slices of {0}")
    for label, text in describe_input(source, *maps.applied(recipe)).items():
        say(f"{label:15s} {text}")
    return DONE


def convert(
    source: str,
    file: Path | None = None,
    out: Path | None = None,
    field_of_view: str | None = None,
    slices: str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
    *,
    recipe: Annotated[
        Recipe,
        flags.Override(f"{_READING} input.noise design.encoding"),
    ],
) -> int:
    """Write what INPUT holds in another format.

    k-space goes to .npz and .npy (NumPy), .h5 and .mrd (ISMRMRD) and .cfl (BART, with .hdr and, where they are known,
    the coil maps as NAME_maps; a volume as kx, ky, kz, coil, and one plane of it as 1, ky, kz, coil); samples along a
    trajectory to .npz and .cfl (with NAME_traj); images to .nii.gz and .nii (NIfTI), .dcm (DICOM, one file for each
    slice), .npz and .npy. What a format cannot hold is named.

    All slices of INPUT are taken, or those of --slices; of several contrasts, phases, repetitions and sets of raw data
    the first, or those that are named.

    Example: mri-design convert scan.h5 scan.cfl; mri-design convert head.npy head.nii.gz --fov 0.24

    Parameters
    ----------
    file : argument OUT
        The file; its ending is the format, one of <endings of files>.
    out : FILE
        The file, as OUT.
    encoding : NAME
        What rows and columns of k-space are: lines, ky and kx; or plane, ky and kz of a 3-D scan, which BART has as 1 x
        ky x kz x coil. [default: lines, and of a volume planes]
    slices : --slices --slice 0,3-5|all
        <own slices> [default: all]
    overwrite : bool
        Replace files that are there.
    """
    from mri_design.experiment.inputs import ALL_SLICES, SliceChoice
    from mri_design.runs.export import convert_file

    if recipe.design.encoding not in gridded_kinds():
        raise UsageError(
            f"--encoding {recipe.design.encoding}, or that of the recipe: a conversion takes lines or plane"
        )
    chosen = ALL_SLICES if slices is None else SliceChoice(slices)
    target = out or file
    if target is None or file not in (None, target):
        raise UsageError("which file is to be written? Give its name once, as OUT or as --out")
    made = convert_file(source, target, recipe, field_of_view=flags.extents_of(field_of_view), slices=chosen)
    return written(made, overwrite=overwrite, quiet=quiet)


def export(
    run: Path,
    to: str,
    out: Path,
    played: Annotated[SequenceFlags, SEQUENCE],
    field_of_view: str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> int:
    """Write what RUN left in another format: its image and error bars, its lines, or the sequence that measures them.

    nifti and dicom: magnitude, and beside it NAME_std with the error bars. cfl: the mask for BART. csv and npy: the
    lines in the order of measurement. mrd: a file for every line's label, without samples. seq: a Pulseq sequence, kept
    only where the file, read back, plays exactly what was designed within the scanner's limits; of designs over a plane
    (ky, kz), spokes and spirals, too.

    Example: mri-design export run --to seq --fov 0.24 --scanner siemens-skyra --out lines.seq; mri-design export
    run --to nifti --out image.nii.gz

    Parameters
    ----------
    run : argument RUN
        Folder of a design, a reconstruction or a protocol.
    to : FORMAT
        One of: <formats>.
    out : FILE
        The file.
    overwrite : bool
        Replace files that are there.
    """
    from mri_design.runs.export import export_run

    sequence = played.asked_for(to == "seq", "--to seq")
    made = export_run(run, to, out, field_of_view=flags.extents_of(field_of_view), sequence=sequence)
    return written(made, overwrite=overwrite, quiet=quiet)


_IN_THE_FILE = ("from 50 %", "to 50 %", "from 80 %", "to 80 %", "draws")
"""Columns of measures.csv that are left out on the terminal, which is not as wide."""


def measure(
    run: Path,
    region: Path,
    against: Path | None = None,
    other: Path | None = None,
    number: int | None = None,
    frame: int | None = None,
    out: Path | None = None,
    no_report: bool = False,
    quiet: bool = False,
) -> int:
    """Mean modulus of regions of RUN's image, and their differences, with standard deviations and intervals.

    Errors come from the draws of the image, over which pixels vary together as their errors do; no map of error bars
    tells that. Where the run has a reference, the true value and the error over the standard deviation stand
    beside. measures.csv has the table, with intervals of 50, 80 and 95 %, figures/regions.svg the regions on the image.

    Example: mri-design measure recon --region lesion.nii.gz --against muscle.nii.gz; the run was made with
    mri-design recon scan.h5 --draws 32 --out recon

    Parameters
    ----------
    run : argument RUN
        Folder of a reconstruction with draws, as recon --draws 32.
    region : MASK
        Flags, or whole numbers from 1 for several regions, on the grid of the image (.npy with the axes of recon.npy),
        or a file whose header says where it lies (NIfTI, DICOM).
    against : MASK
        Differences to this region instead of those of all pairs.
    other : --and RUN
        The same regions in another run, and differences of both images.
    number : --slice N
        Of a volume, the slice of the mask.
    frame : N
        Of several repetitions or echoes, one.
    out : DIR
        Where measures.csv goes. [default: RUN itself]
    """
    from mri_design.evaluation.run_folder import RunFolder
    from mri_design.evaluation.tables import column_names, shown_texts
    from mri_design.runs.measure import measure_run, report_measures

    measured = measure_run(run, region, against=against, other=other, slice_number=number, frame=frame)
    with RunFolder(run if out is None else out, reported=not no_report) as folder:
        report_measures(folder, measured)
    names = [name for name in column_names(measured.rows) if name not in _IN_THE_FILE]
    table = [names, *shown_texts(measured.rows, names, measured.formats)]
    first, *others = (max(map(len, column)) for column in zip(*table, strict=True))
    for name, *numbers in table:
        cells = (f"{number:>{width}}" for number, width in zip(numbers, others, strict=True))
        say("  ".join([f"{name:<{first}}", *cells]).rstrip(), quiet)
    for sentence in measured.sentences:
        say(sentence, quiet)
    return DONE


_LARGEST = 4096


def mask(
    kind: str,
    shape: str,
    out: Path,
    played: Annotated[SequenceFlags, SEQUENCE],
    acceleration: float | None = None,
    lines: Annotated[int | None, flags.Within(1)] = None,
    calibration: Annotated[int | None, flags.Within(0)] = None,
    seed: flags.Seed = 0,
    encoding: str | None = None,
    field_of_view: str | None = None,
    no_picture: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    *,
    recipe: Annotated[
        Recipe,
        flags.Override("design.order design.block constraints.partial_fourier constraints.shutter"),
    ],
) -> int:
    """Make a mask without a scan, with exactly the acceleration asked for, and a picture of it.

    The picture shows the mask and its point-spread function, the image of a point, whose largest side lobe is given
    as a number. The same seed gives the same mask, which is that of design with the same strategy. recon takes .npy and
    .cfl as --mask.

    Example: mri-design mask --kind poisson-disc --shape 256x180 --acceleration 8 --calibration 24 --seed 3 --out
    mask.npy

    Parameters
    ----------
    kind : NAME
        Of lines: <masks of lines>. Of a plane: <masks of a plane>, and those of SigPy and BART, sigpy-poisson and
        bart-poisson. Of shots: <kinds of shots>, evenly over half a turn, or with a set of angles behind a
        colon: <masks of shots>. A power or distance stands behind a colon, too: vd:3 (vd is vd-polynomial), regular:4,
        caipi:2x3.
    shape : N[xN]
        Sides of k-space: ky x kx of lines, ky x kz of a plane, which two numbers mean where the kind knows planes; see
        --encoding.
    out : FILE
        The file; its ending is the format, one of <endings of masks>: NumPy, BART, a table in the order of measurement,
        or a Pulseq sequence.
    lines : --lines --samples --shots N
        Instead of an acceleration: so many lines, samples or shots, those at the centre included.
    calibration : N
        Lines, or side of the square, at the centre without a gap; they count. 0 is none. [default: the strategy's]
    encoding : NAME
        What is chosen, where a kind knows several: <encodings>.
    no_picture : bool
        Only the file, without the picture beside it (.png).
    block : N
        Lines of an echo train. [default: 1, or the recipe's]
    field_of_view : --fov M[,M]
        Field of view in metres, along phase encoding and readout where they differ; a sequence needs it.
    echo_time : --te S
        Echo time; of tse the time between echoes. [default: 0.010; tse: 0.016]
    repetition_time : --tr S
        Repetition time. [default: 0.030; tse: 3]
    flip_angle : --flip DEGREES
        Flip angle; of tse that of the refocusing pulses. [default: 15; tse: 180]
    resolution : M
        Pixel size along the readout, metres. [default: the field of view over kx of --shape; of a plane over ky]
    slice_thickness : --thickness M
        Thickness of the slice, metres; of a plane (ky, kz) its extent along kz, which is needed. [default: 0.005]
    etl : N
        Length of the echo trains of tse: N lines in their order after each excitation. [default: --block]
    overwrite : bool
        Replace files that are there.
    """
    from mri_design.runs.mask import MaskRequest, make_mask

    if encoding is not None and encoding not in designed_kinds():
        raise UnknownNameError("encoding", encoding, designed_kinds())
    wanted = f"one or two whole numbers from 4 to {_LARGEST}, as 256 or 256x180"
    sides = flags.numbers_of("--shape", shape.replace("x", ","), wanted, (4, _LARGEST), (1, 2), whole=True)
    request = MaskRequest(
        kind,
        tuple(sides),
        out,
        recipe,
        encoding=encoding,
        count=lines,
        acceleration=acceleration,
        calibration=calibration,
        seed=seed,
        picture=not no_picture,
        field_of_view=flags.extents_of(field_of_view),
        sequence=played.asked_for(out.suffix == ".seq", "a sequence, --out NAME.seq"),
    )
    return written(make_mask(request), overwrite=overwrite, quiet=quiet)
