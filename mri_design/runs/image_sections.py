"""Images in reports: pictures, tables, error bars, coil maps, companions, and the first screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation import plots
from mri_design.evaluation.metrics import OBJECT, ranked
from mri_design.evaluation.page import Block, FirstPicture, ReportFigure, ReportTable, Section, saved_figure
from mri_design.evaluation.plots.panels import (
    GREY_SCALE,
    Frame,
    ImagePanel,
    Layout,
    Pixel,
    across,
    displayed,
    error_caption,
    metric_caption,
    object_top,
    scale_top,
)
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import Row, percent
from mri_design.experiment.reconstruction import Reconstruction
from mri_design.kinds import KINDS, count_text
from mri_design.model.companion import unit_modulus
from mri_design.operators.base import Array
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts, ShotReadouts
from mri_design.runs.scan_facts import KnownSamples, KnownScan, KnownSlice, NamedImage, pixel_of
from mri_design.runs.verdicts import RelativeError
from mri_design.scan.data import Orientation
from mri_design.scan.sampling import gapless_run, line_pattern
from mri_design.scan.trajectories import compensated_spread

COIL_MAPS, DRAWS, REFERENCE = "coil_maps.npy", "draws.npy", "reference.npy"
_COIL_COLUMNS = 4
Rows = list[dict[str, object]]


def account_settings(account: Mapping[str, object]) -> dict[str, object]:
    """Rows of a summary, such as `Reconstruction.account`, by the names of a manifest's settings."""
    return {name.replace(" ", "_").replace("-", "_"): value for name, value in account.items()}


def layout_of(candidates: Readouts, orientation: Orientation) -> Layout:
    """Layout of images of these candidates, from which their directions are named.

    Parameters
    ----------
    candidates : Readouts
        Candidates: a plane has two phase encodes, shots have none.
    orientation : {"ky-rows", "ky-columns"}
        Layout of the source image.
    """
    if candidates.name == "plane":
        return "plane-columns" if orientation == "ky-columns" else "plane-rows"
    return orientation if candidates.name == "lines" else "no-lines"


def frame_of(known: KnownSlice) -> Frame:
    """How images of a slice lie on the page, and how large their pixels are."""
    layout: Layout = "no-lines"
    if isinstance(known, KnownScan):
        layout = layout_of(known.slice_model.candidates, known.data.orientation)
    return Frame(layout, pixel_of(known.data))


def metric_rows(images: Sequence[NamedImage], measured: Mapping[str, object]) -> Rows:
    """Rows of metrics.csv: the pair that images are judged by, and errors against the reference as it is.

    Parameters
    ----------
    images : sequence of NamedImage
        One for every row.
    measured : mapping of str to object
        Column to number: how much all of them were made from.
    """
    return [
        {
            "method": named.name,
            **measured,
            **named.error.columns,
            **{name: getattr(named.errors, name, None) for name in ("relative_l2", "psnr", "ssim")},
            "converged": named.reconstruction.convergence.converged,
            "matvecs": named.reconstruction.convergence.matvecs,
        }
        for named in images
    ]


def error_table(rows: Sequence[Row], about: str, *, noisy: bool = False) -> ReportTable:
    """Rows of metrics.csv under a caption that explains them; of errors it shows the pair that images are judged by.

    ``noisy`` says whether the reference carries noise.
    """
    shown = [{name: value for name, value in row.items() if name != "relative_l2"} for row in rows]
    caption = (
        f"{about} Predicted and found error are of the complex image without the noise of the reference (of the modulus"
        f" beside an image from a file); PSNR and SSIM are of magnitudes inside the object. {OBJECT}"
    )
    if noisy:
        caption += " The reference carries noise, which PSNR and SSIM reward: by them zero-filled images look better."
    formats = {"predicted_error": ".4f", "found_error": ".4f", "psnr": ".2f", "ssim": ".4f"}
    return ReportTable(shown, caption, formats)


def with_ranks(rows: Rows, noise: float | None, of_all: bool) -> Rows:
    """The rows with whether their errors rank images, where the reference carries noise.

    Parameters
    ----------
    rows : list of mappings
        `metric_rows` of the images.
    noise : float or None
        `reference_noise`; None for a true image, of which the rows stay as they are.
    of_all : bool
        Whether the images were made from all samples that the reference was made from. Then a row without errors is of
        the reference itself.
    """
    if noise is None:
        return rows
    itself = "no: it is the reference"
    errors = [row["relative_l2"] for row in rows]
    said = [ranked(error, noise, of_all) if isinstance(error, float) else itself for error in errors]
    return [{**row, "ranks": rank} for row, rank in zip(rows, said, strict=True)]


def image_sections(
    folder: RunFolder, known: KnownSlice, images: Sequence[NamedImage], rows: Rows, about: str | None = None
) -> list[Section]:
    """Figures of reconstructions: images, error maps on one scale, error bars, and what noise does to the first.

    Parameters
    ----------
    folder : RunFolder
        Where to.
    known : KnownSlice
        The slice, and what errors are measured against.
    images : sequence of NamedImage
        Images to show.
    rows : list of mappings
        `metric_rows` of the images.
    about : str, optional
        In the place of what the table's caption says of errors and acceleration of lines.
    """
    reference, frame, noisy = known.shown_reference, frame_of(known), known.reference_noise is not None
    if about is None and known.given is not None:
        about = known.given.caption
    if about is None:
        against = "Errors are relative to the reference"
        against = "There is no fully sampled image to measure errors against" if reference is None else against
        about = f"{against}; acceleration counts centre lines."
    panels = [] if reference is None else [ImagePanel(reference, "reference")]
    panels += [
        ImagePanel(one.reconstruction.image, one.name, metric_caption(one.error.found, one.errors)) for one in images
    ]
    blocks: list[Block] = [
        ReportTable(rows, about) if reference is None else error_table(rows, about, noisy=noisy),
        saved_figure(folder, "images", lambda: plots.image_grid(panels, frame), f"{GREY_SCALE}."),
    ]
    if reference is not None:
        modulus = bool(images[0].error.against)
        compared = [ImagePanel(one.reconstruction.image, one.name, error_caption(one.error.found)) for one in images]
        caption = f"Errors of the {images[0].error.of} on one scale. Structure in them is structure that is missing."
        caption += " The reference's noise is in them too, everywhere, but not in the numbers." if noisy else ""
        drawn = saved_figure(
            folder, "errors", lambda: plots.error_maps(compared, reference, frame, modulus=modulus), caption
        )
        blocks.append(drawn)
    for named in images:
        if named.reconstruction.std is None:
            continue
        scale = named.reconstruction.std_factor
        caption = "Posterior standard deviation of each complex pixel."
        if reference is not None:
            caption = f"Error bars beside the actual error, one scale{'' if scale is None else f'; they are {scale}'}."
            caption += " The actual error holds the reference's noise, which error bars do not." if noisy else ""
        blocks.append(error_bars_figure(folder, named.reconstruction, reference, frame, caption, named.error))
    sections = [Section("Reconstruction", blocks)]
    if (noise := images[0].reconstruction.noise) is not None:
        caption = (
            f"{str(noise)[0].upper()}{str(noise)[1:]}: the noise of a pixel over that of the complete scan, over the "
            "root of the acceleration (g_factor.npy); noise.npy has the standard deviation in the image's units."
        )
        drawn = saved_figure(folder, "g-factor", lambda: plots.g_factor_map(noise.g_factor, frame), caption)
        sections.append(Section("Noise and g-factor", [drawn]))
    return sections


def error_bars_figure(
    folder: RunFolder,
    result: Reconstruction,
    reference: Array | None,
    frame: Frame,
    caption: str,
    error: RelativeError,
) -> ReportFigure:
    """The error bars of an image that has some, beside its actual error where there is a reference."""
    image, std = result.image, result.std
    assert std is not None
    pair = {"predicted": error.predicted, "found": error.found}
    predicted, found = ("" if value is None else f"{percent(value)} {name}" for name, value in pair.items())
    captions = predicted, found
    return saved_figure(folder, "std", lambda: plots.std_maps(std, image, reference, frame, captions), caption)


def save_images(
    folder: RunFolder, result: Reconstruction, rows: Rows, reference: Array | None = None, maps: Array | None = None
) -> None:
    """Write recon.npy, metrics.csv, and of error bars, noise, draws and coil maps (coil, ky, kx) those that there are.

    Those of an earlier run do not stay. Images are in the input's units (`PreparedScan.image_unit`). Beside draws
    stands the reference, where there is one, against which errors of regions are measured.
    """
    noise, drawn = result.noise, result.draws
    of_pixels = {
        "std.npy": result.std,
        "noise.npy": None if noise is None else noise.std,
        "g_factor.npy": None if noise is None else noise.g_factor,
    }
    images = {"recon.npy": result.image, DRAWS: drawn, REFERENCE: None if drawn is None else reference, COIL_MAPS: maps}
    for name, values in {**of_pixels, **images}.items():
        if values is None:
            folder.remove(name)
        elif name in of_pixels:
            folder.write_std(name, values)
        else:
            folder.write_image(name, np.asarray(values, dtype=np.complex64))
    folder.write_table("metrics.csv", rows)


def coil_map_sections(folder: RunFolder, known: KnownSlice) -> list[Section]:
    """The report's section about the coil maps of a slice; nothing of one coil."""
    maps, frame = known.scan.maps_as_read, frame_of(known)
    if maps is None:
        return []
    panels = [ImagePanel(one, f"coil {number}") for number, one in enumerate(maps[0], 1)]
    caption = (
        f"Magnitude of the coil sensitivity maps, {known.scan.maps_source}, on one grey scale, coils as the scan's "
        "file has them."
    )
    drawn = saved_figure(folder, "coil-maps", lambda: plots.image_grid(panels, frame, _COIL_COLUMNS), caption)
    return [Section("Coil maps", [drawn])]


def image_rows(known: KnownSlice, images: Sequence[NamedImage], lines: Sequence[int]) -> Rows:
    """Rows of metrics.csv of images that were made from ``lines``, or from samples along a trajectory."""
    if isinstance(known, KnownSamples):
        return metric_rows(images, {"readouts": known.data.n_readouts, "samples": len(known.data.trajectory)})
    assert isinstance(known, KnownScan)
    counted = KINDS[known.slice_model.candidates.name].counted
    rows = metric_rows(images, {counted: len(lines), "acceleration": known.acceleration(lines)})
    return with_ranks(rows, known.reference_noise, known.holds_reference(lines))


def save_reconstruction(
    folder: RunFolder, known: KnownSlice, images: Sequence[NamedImage], lines: Sequence[int], about: str | None = None
) -> list[Section]:
    """Write the first image, its error bars and everybody's errors; return the report's sections about the images.

    Parameters
    ----------
    folder : RunFolder
        Where to: files of `save_images`, and figures.
    known : KnownSlice
        The slice, and what errors are measured against.
    images : sequence of NamedImage
        The run's own image, then others to compare it with.
    lines : sequence of int
        Lines behind all of them.
    about : str, optional
        Caption of the table, see `image_sections`.
    """
    rows, made, maps = image_rows(known, images, lines), images[0].reconstruction, known.scan.maps_as_read
    save_images(folder, made, rows, known.shown_reference, None if maps is None else maps[0])
    return [
        *image_sections(folder, known, images, rows, about),
        *coil_map_sections(folder, known),
        *companion_sections(folder, made, frame_of(known)),
    ]


@dataclass(frozen=True)
class CompanionPictures:
    """The other images of the object that an image was offered, where they lie, and the image without them.

    Parameters
    ----------
    panels : sequence of ImagePanel
        In the brightness of the image.
    about : str
        What was made of them.
    """

    panels: Sequence[ImagePanel]
    about: str

    @classmethod
    def of(cls, made: Reconstruction, whose: str = "") -> CompanionPictures | None:
        """Those of a reconstruction, ``whose`` it is in words; None where it was offered none."""
        choice = made.companions
        if choice is None:
            return None
        level = float(np.percentile(np.abs(made.image), 99.5))  # brightness of its own has none of them
        offered = [(one.companion, "used" if one.used else "not used") for one in choice.offered]
        panels = [ImagePanel(level * unit_modulus(one.image), one.name, used) for one, used in offered]
        if made.alone is not None:
            panels.append(ImagePanel(made.alone, "without them", "under the local prior"))
        places = "; ".join(f"{one.companion.name} was {one.companion.placed}" for one in choice.offered)
        return cls(panels, f"Of the other images of the object{whose} {choice}. {places}.")

    def section(self, folder: RunFolder, frame: Frame) -> Section:
        """Of a report."""
        caption = f"{GREY_SCALE}. {self.about}"
        drawn = saved_figure(folder, "companions", lambda: plots.image_grid(self.panels, frame), caption)
        return Section("Other images", [drawn])


def companion_sections(folder: RunFolder, made: Reconstruction, frame: Frame, mask: str = "") -> list[Section]:
    """The pictures of companions, where there are some, of an image and its mask, where there are several masks."""
    pictures = CompanionPictures.of(made, f", for the mask of {mask}," if mask else "")
    return [] if pictures is None else [pictures.section(folder, frame)]


def curves_figure(
    folder: RunFolder,
    name: str,
    sets: Mapping[str, NDArray[np.floating]],
    grid: tuple[int, int],
    unit: str,
    first: str,
    about: str = "",
) -> ReportFigure:
    """Sets of shots as curves in k-space, under a caption that says what the colours mean.

    Parameters
    ----------
    folder : RunFolder
        Of the run.
    name : str
        Of the figure's files.
    sets : mapping of str to float array, shape (shot, sample, 2)
        Title to shots, (ky, kx) in cycles per field of view; the first of each is drawn in a colour of its own.
    grid : tuple of int
        Pixels (ky, kx) of the image.
    unit : str
        Name of a shot.
    first : str
        Description of a panel's first shot: "the first one of the scan".
    about : str
        Further sentences.
    """
    caption = f"Where k-space is measured, one curve for each {unit}; the thick one is {first}. ky runs down. {about}"
    return saved_figure(folder, name, lambda: plots.trajectory_curves(sets, grid, first=first), caption.strip())


def point_spread_figure(
    folder: RunFolder,
    title: str,
    trajectory: NDArray[np.floating],
    grid: tuple[int, int],
    units: str,
    density: NDArray[np.float64] | None = None,
) -> ReportFigure:
    """The point-spread function of some shots, compensated for the density of their samples.

    Parameters
    ----------
    folder : RunFolder
        Of the run.
    title : str
        Of the panel.
    trajectory : float array, shape (sample, 2)
        Columns (ky, kx) in cycles per field of view.
    grid : tuple of int
        Pixels (ky, kx) of the image.
    units : str
        Which shots these are: "the chosen arms".
    density : float array, shape (sample,), optional
        Density compensation that came with the scan.
    """
    return saved_figure(
        folder,
        "point-spread",
        lambda: plots.point_spread_maps({title: compensated_spread(trajectory, grid, density)}),
        f"Point-spread function: what {units} make of a point, the density of their samples compensated for.",
    )


def mask_figure(folder: RunFolder, title: str, mask: NDArray[np.bool_]) -> ReportFigure:
    """Figure of the lines (ky,) or samples of a plane (ky, kz) that are measured, under a sentence about them."""
    if mask.ndim == 1:
        return saved_figure(folder, "mask", lambda: plots.mask_barcodes({title: mask}), mask_sentence(mask))
    caption = "Measured samples (ky, kz), DC in the middle."
    return saved_figure(folder, "mask", lambda: plots.plane_masks({title: mask}), caption)


def mask_sentence(mask: NDArray[np.bool_]) -> str:
    """Describe a mask: how far its centre is filled, where the other lines lie, and the largest gap.

    Parameters
    ----------
    mask : bool array, shape (ky,)
        True where the line is measured; DC at ``N // 2``.
    """
    dc, lines = len(mask) // 2, np.flatnonzero(mask)
    said = f"{len(lines)} of {len(mask)} lines are measured"
    if pattern := line_pattern(mask) if len(lines) else "":
        return f"{said}: they are {pattern}."
    if not len(lines) or not mask[dc]:
        return f"{said}, the one through the centre not among them."
    low, high = gapless_run(mask, dc)
    gap = int((np.diff(lines) - 1).max()) if len(lines) > 1 else 0
    further = f", the others with gaps of at most {gap}" if len(lines) > high - low + 1 else ""
    return f"{said}, without a gap from ky = {low - dc} to {high - dc}{further}."


ERROR = (
    "Error: norm of the difference of magnitudes to the reference, divided by the norm of the reference. 5 % is hard "
    "to see, 20 % is plain."
)
ACCELERATION = "Acceleration: lines (or samples) of the full grid over those measured; of shots pixels over samples."
ERROR_BARS = "Error bars: the standard deviation of each pixel under the posterior, bright where it is uncertain."
READING = (
    "Error found: norm of the difference of the complex image to the reference (of the modulus beside an image from a "
    "file), without the reference's noise, divided by the norm of the reference. 5 % is hard to see, 20 % is plain.",
    "Error predicted: the same as the error bars have it, without a look at the reference; it holds where model and "
    "noise are right.",
    ERROR_BARS,
    ACCELERATION,
)
"""How to read what stands above it, in paragraphs."""


def reading_of(layout: Layout) -> tuple[str, ...]:
    """`READING`, and how the image's array in the folder lies against the picture of it."""
    second = {"plane-rows": "kz", "plane-columns": "kz", "no-lines": "columns"}.get(layout, "kx")
    first = "rows" if layout == "no-lines" else "ky"
    axes = f"Arrays: recon.npy has the axes {first} and {second}, behind that of slices where there are several"
    if not across(layout):
        return *READING, f"{axes}, and lies as the picture does."
    return *READING, f"{axes}. The picture has {first} across: numpy.swapaxes(array, -2, -1) lies as it does."


def first_row(readouts: Readouts, mask: NDArray[np.bool_], result: Reconstruction, frame: Frame) -> list[FirstPicture]:
    """Mask, image, and error bars where there are some, in one row.

    Parameters
    ----------
    readouts : Readouts
        Candidates.
    mask : bool array of their shape
        Those behind the image.
    result : Reconstruction
        Image and error bars in the units of the scan.
    frame : Frame
        Of the image.
    """
    row = [mask_picture(frame, readouts, mask), image_picture(frame, result.image)]
    if result.std is not None:
        white = object_top([np.abs(result.image)])
        caption = (
            "Standard deviation of each pixel, in per cent of what is white in the image; where it is bright, the "
            "image is uncertain."
        )
        row.append(doubt_picture(frame, result.std, scale_top([result.std]), white, "Error bars", caption))
    return row


def mask_picture(frame: Frame, readouts: Readouts, mask: NDArray[np.bool_], strategy: str = "") -> FirstPicture:
    """K-space with what is measured of it in white, by a strategy that is named where there are several."""
    count, size = int(mask.sum()), mask.size
    if isinstance(readouts, LineReadouts):
        cells = np.broadcast_to(mask[:, np.newaxis], readouts.grid)
        caption = f"{count} of {size} lines of k-space are measured (white)"
        low, high = gapless_run(mask, size // 2)
        centre = high - low + 1
        caption += f", {centre} of them at the centre without a gap." if centre > 1 else "."
    elif isinstance(readouts, PlaneReadouts):
        cells, caption = mask, f"{count} of {size} samples (ky, kz) are measured (white)."
    else:
        assert isinstance(readouts, ShotReadouts)
        cells = _cells(readouts, mask)
        caption = f"{count_text(count, readouts.unit)}: white cells of k-space hold samples."
    named = f"{strategy}: " if strategy else ""
    return _picture(Frame(frame.layout), cells.astype(float), 1.0, "Measured", named + caption)


def image_picture(frame: Frame, image: Array) -> FirstPicture:
    """The magnitude in grey."""
    magnitude = np.abs(image)
    white = object_top([magnitude])
    caption = "Magnitude. White is the 99th percentile of the object, so that no bright spot darkens the rest."
    return _picture(frame, magnitude, white, "Image", caption, f"{white:.3g}")


def doubt_picture(
    frame: Frame, pixels: NDArray[np.floating], top: float, white: float, title: str, caption: str
) -> FirstPicture:
    """Error bars or actual errors in the colours of both.

    Parameters
    ----------
    frame : Frame
        Of the image.
    pixels : float array, shape (ky, kx)
        Not negative.
    top : float
        What is shown brightest.
    white : float
        What is white in the image, the unit of the scale.
    title, caption : str
        Above and below it.
    """
    return _picture(frame, pixels, top, title, caption, percent(top / white), error=True)


def facts_of(
    readouts: Readouts, pixel: Pixel | None, coils: int, acceleration: float | None, part: str = ""
) -> list[str]:
    """Slice, matrix, field of view, coils and acceleration, each in a few words.

    Parameters
    ----------
    readouts : Readouts
        Candidates.
    pixel : tuple of float, optional
        Size of a pixel.
    coils : int
        Coils of the scan.
    acceleration : float, optional
        Of what is shown.
    part : str
        `part_of_scan`; empty of a scan that is all that its file holds.
    """
    rows, columns = readouts.grid
    axes = {"lines": "phase encode x readout", "plane": "ky x kz"}.get(readouts.name, "pixels")
    facts = [part or "the only slice", f"matrix {rows} x {columns} ({axes})"]
    if pixel is None:
        facts.append("field of view: not in the file")
    else:
        sides = f"{rows * pixel[0]:.4g} x {columns * pixel[1]:.4g} mm"
        facts.append(f"field of view {sides}, pixel {pixel[0]:.3g} x {pixel[1]:.3g} mm")
    facts.append(count_text(coils, "coil"))
    if acceleration is not None:
        facts.append(f"acceleration {acceleration:.3g}")
    return [fact.replace(" x ", " \N{MULTIPLICATION SIGN} ") for fact in facts]


def measured_text(readouts: Readouts, count: int) -> str:
    """So many of so many: "64 of 256 lines"; of shots, which are as many as asked for, the number alone."""
    if KINDS[readouts.name].shots or readouts.name == "readouts":
        return count_text(count, readouts.unit)
    return f"{count} of {count_text(readouts.size, readouts.unit)}"


def _picture(
    frame: Frame,
    pixels: NDArray[np.floating],
    top: float,
    title: str,
    caption: str,
    told: str = "",
    *,
    error: bool = False,
) -> FirstPicture:
    """Pixels from 0 to ``top``, which is ``told`` beside the colours; without it colours mean no number."""
    layout, shape = frame.layout, displayed(pixels, frame.layout).shape
    ramp = plots.pixels_png(np.linspace(0, 1, 64)[np.newaxis], 1.0, "ky-rows", error=error) if told else b""
    return FirstPicture(
        title,
        plots.pixels_png(pixels, top, layout, error=error),
        (shape[0], shape[1]),
        caption,
        proportion=frame.proportion,
        bar=frame.scale_bar(shape[1]),
        ramp=ramp,
        top=told,
    )


def _cells(readouts: ShotReadouts, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Cells of the grid (ky, kx) in which some sample of the chosen shots lies."""
    cells = np.zeros(readouts.grid, dtype=bool)
    places = np.rint(readouts.shots[mask].reshape(-1, 2)).astype(int) + np.array(readouts.grid) // 2
    inside = ((places >= 0) & (places < readouts.grid)).all(axis=1)
    cells[tuple(places[inside].T)] = True
    return cells
