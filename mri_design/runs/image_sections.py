"""Images in reports: pictures, tables, error bars, coil maps, companions, and the first screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation import plots
from mri_design.evaluation.metrics import RelativeError, ranked
from mri_design.evaluation.page import (
    Block,
    FirstPicture,
    FirstScreen,
    ReportFigure,
    ReportTable,
    Section,
    saved_figure,
    sentence,
)
from mri_design.evaluation.pictures import Drawing
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import Row, percent
from mri_design.experiment.reconstruction import Image
from mri_design.kinds import KINDS, count_text
from mri_design.model.companion import unit_modulus
from mri_design.operators.base import Array
from mri_design.readouts import LineReadouts, Readouts, ShotReadouts
from mri_design.runs.known_slice import KnownSlice, NamedImage, pixel_of
from mri_design.runs.provenance import part_of_scan, told
from mri_design.scan.data import Orientation, TrajectoryData
from mri_design.scan.sampling import gapless_run, line_pattern
from mri_design.scan.trajectories import compensated_spread

COIL_MAPS, DRAWS, REFERENCE = "coil_maps.npy", "draws.npy", "reference.npy"
_COIL_COLUMNS = 4
Rows = list[dict[str, object]]


def account_settings(account: Mapping[str, object]) -> dict[str, object]:
    """Rows of a summary, such as `Image.account`, by the names of a manifest's settings."""
    return {name.replace(" ", "_").replace("-", "_"): value for name, value in account.items()}


def layout_of(candidates: Readouts, orientation: Orientation) -> plots.Layout:
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


def frame_of(known: KnownSlice) -> plots.Frame:
    """How images of a slice lie on the page, and how large their pixels are."""
    layout: plots.Layout = "no-lines"
    if known.data.on_grid:
        layout = layout_of(known.slice_model.candidates, known.data.orientation)
    return plots.Frame(layout, pixel_of(known.data))


def error_table(rows: Sequence[Row], about: str, *, noisy: bool = False) -> ReportTable:
    """Rows of metrics.csv under a caption that explains them; of errors it shows the pair that images are judged by.

    ``noisy`` says whether the reference carries noise.
    """
    shown = [{name: value for name, value in row.items() if name != "relative_l2"} for row in rows]
    formats = {"predicted_error": ".4f", "found_error": ".4f", "psnr": ".2f", "ssim": ".4f"}
    return ReportTable(shown, sentence("error_table", about, noisy), formats)


def image_sections(
    folder: RunFolder, known: KnownSlice, images: Sequence[NamedImage], rows: Rows, *, several: bool = False
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
        Errors of the images, a row each.
    several : bool
        Whether this is one slice of several.
    """
    reference, frame, noisy = known.shown_reference, frame_of(known), known.reference_noise is not None
    given = "" if known.given is None else known.given.caption
    if isinstance(known.data, TrajectoryData):
        data, pixels = known.data, None if several else known.data.grid_shape[0] * known.data.grid_shape[1]
        weighted = data.density is not None
        about = sentence("about_samples", len(data.trajectory), data.n_readouts, pixels, weighted, given)
    elif isinstance(known.slice_model.candidates, ShotReadouts):
        about = sentence("about_shots_of_design")
    else:
        about = given or sentence("about_errors", reference is not None)
    panels = [] if reference is None else [plots.ImagePanel(reference, "reference")]
    panels += [
        plots.ImagePanel(one.reconstruction.image, one.name, plots.metric_caption(one.error.found, one.errors))
        for one in images
    ]
    blocks: list[Block] = [
        ReportTable(rows, about) if reference is None else error_table(rows, about, noisy=noisy),
        saved_figure(folder, "images", lambda: plots.image_grid(panels, frame)),
    ]
    if reference is not None:
        modulus, of = bool(images[0].error.against), images[0].error.of
        compared = [
            plots.ImagePanel(one.reconstruction.image, one.name, plots.error_caption(one.error.found)) for one in images
        ]

        def maps() -> Drawing:
            return plots.error_maps(compared, reference, frame, modulus=modulus)

        blocks.append(saved_figure(folder, "errors", maps, of=of, noisy=noisy))
    for named in images:
        made = named.reconstruction
        if made.std is not None:
            caption = sentence("std", reference is not None, made.std_factor, noisy)
            blocks.append(error_bars_figure(folder, made, reference, frame, caption, named.error))
    sections = [Section("Reconstruction", blocks)]
    if (noise := images[0].reconstruction.noise) is not None:
        drawn = saved_figure(folder, "g-factor", lambda: plots.g_factor_map(noise.g_factor, frame), noise=str(noise))
        sections.append(Section("Noise and g-factor", [drawn]))
    return sections


def error_bars_figure(
    folder: RunFolder,
    result: Image,
    reference: Array | None,
    frame: plots.Frame,
    caption: str,
    error: RelativeError,
) -> ReportFigure:
    """The error bars of an image that has some, beside its actual error where there is a reference."""
    image, std = result.image, result.std
    assert std is not None
    pair = {"predicted": error.predicted, "found": error.found}
    captions = ["" if value is None else f"{percent(value)} {name}" for name, value in pair.items()]
    return saved_figure(folder, "std", lambda: plots.std_maps(std, image, reference, frame, captions), caption)


def save_images(
    folder: RunFolder, result: Image, rows: Rows, reference: Array | None = None, maps: Array | None = None
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
    panels = [plots.ImagePanel(one, f"coil {number}") for number, one in enumerate(maps[0], 1)]
    source = told("maps", known.scan.provenance.maps)
    drawn = saved_figure(folder, "coil-maps", lambda: plots.image_grid(panels, frame, _COIL_COLUMNS), source=source)
    return [Section("Coil maps", [drawn])]


def image_rows(known: KnownSlice, images: Sequence[NamedImage], lines: Sequence[int]) -> Rows:
    """Rows of metrics.csv: the pair that images are judged by, and errors against the reference as it is.

    Where the reference carries noise, they say whether these errors rank images (`metrics.ranked`).

    Parameters
    ----------
    known : KnownSlice
        The slice.
    images : sequence of NamedImage
        One for every row.
    lines : sequence of int
        What all of them were made from; along a trajectory it is all that the slice holds.
    """
    if known.data.on_grid:
        counted = KINDS[known.slice_model.candidates.name].counted
        measured = {counted: len(lines), "acceleration": known.acceleration(lines)}
    else:
        assert isinstance(known.data, TrajectoryData)
        measured = {"readouts": known.data.n_readouts, "samples": len(known.data.trajectory)}
    rows: Rows = []
    for named in images:
        errors, ended = named.errors, named.reconstruction.convergence
        row: dict[str, object] = {"method": named.name, **measured, **named.error.columns}
        row |= {name: getattr(errors, name, None) for name in ("relative_l2", "psnr", "ssim")}
        row |= {"converged": ended.converged, "matvecs": ended.matvecs}
        if known.data.on_grid and known.reference_noise is not None:
            noise, of_all = known.reference_noise, known.holds_reference(lines)
            row["ranks"] = ranked(errors.relative_l2, noise, of_all) if errors else "no: it is the reference"
        rows.append(row)
    return rows


def save_reconstruction(
    folder: RunFolder, known: KnownSlice, images: Sequence[NamedImage], lines: Sequence[int]
) -> list[Section]:
    """Write the first image, its error bars and the errors of all; return the sections of the report, if there is one.

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
    """
    rows, made, maps = image_rows(known, images, lines), images[0].reconstruction, known.scan.maps_as_read
    save_images(folder, made, rows, known.shown_reference, None if maps is None else maps[0])
    if not folder.reported:
        return []
    return [
        *image_sections(folder, known, images, rows),
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

    panels: Sequence[plots.ImagePanel]
    about: str

    @classmethod
    def of(cls, made: Image, whose: str = "") -> CompanionPictures | None:
        """Those of a reconstruction, ``whose`` mask it is of if there are several; None where it was offered none."""
        choice = made.companions
        if choice is None:
            return None
        level = float(np.percentile(np.abs(made.image), 99.5))  # brightness of its own has none of them
        offered = [(one.companion, "used" if one.used else "not used") for one in choice.offered]
        panels = [plots.ImagePanel(level * unit_modulus(one.image), one.name, used) for one, used in offered]
        if made.alone is not None:
            panels.append(plots.ImagePanel(made.alone, "without them", "under the local prior"))
        places = "; ".join(f"{one.companion.name} was {one.companion.placed}" for one in choice.offered)
        whose = f", for the mask of {whose}," if whose else ""
        return cls(panels, f"Of the other images of the object{whose} {choice}. {places}.")

    def section(self, folder: RunFolder, frame: plots.Frame) -> Section:
        """Of a report."""
        drawn = saved_figure(folder, "companions", lambda: plots.image_grid(self.panels, frame), about=self.about)
        return Section("Other images", [drawn])


def companion_sections(folder: RunFolder, made: Image, frame: plots.Frame, mask: str = "") -> list[Section]:
    """The pictures of companions, where there are some, of an image and its mask, where there are several masks."""
    pictures = CompanionPictures.of(made, mask)
    return [] if pictures is None else [pictures.section(folder, frame)]


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
    spread = {title: compensated_spread(trajectory, grid, density)}
    return saved_figure(folder, "point-spread", lambda: plots.point_spread_maps(spread), units=units)


def mask_figure(folder: RunFolder, title: str, mask: NDArray[np.bool_]) -> ReportFigure:
    """Figure of the lines (ky,) or samples of a plane (ky, kz) that are measured, under a sentence about them.

    That about lines says how far their centre is filled, where the others lie, and the largest gap.
    """
    if mask.ndim == 2:
        return saved_figure(folder, "mask", lambda: plots.plane_masks({title: mask}), sentence("plane"))
    dc, lines = len(mask) // 2, np.flatnonzero(mask)
    low, high = gapless_run(mask, dc)
    more = len(lines) > max(high - low + 1, 1)
    facts: dict[str, Any] = {
        "lines": len(lines),
        "size": len(mask),
        "pattern": line_pattern(mask) if len(lines) else "",
        "centre": (low - dc, high - dc) if mask[dc] else None,
        "gap": int((np.diff(lines) - 1).max()) if more else None,
    }
    return saved_figure(folder, "mask", lambda: plots.mask_barcodes({title: mask}), **facts)


def reading(*names: str) -> tuple[str, ...]:
    """Paragraphs on how to read a page: what an error, error bars and an acceleration are."""
    return tuple(map(sentence, names))


def reading_of(layout: plots.Layout) -> tuple[str, ...]:
    """How to read a page about images, and how an image's array in the folder lies against the picture of it."""
    second = {"plane-rows": "kz", "plane-columns": "kz", "no-lines": "columns"}.get(layout, "kx")
    arrays = sentence("arrays", "rows" if layout == "no-lines" else "ky", second, plots.across(layout))
    return *reading("error_found", "error_predicted", "error_bars", "acceleration"), arrays


def first_row(readouts: Readouts, mask: NDArray[np.bool_], result: Image, frame: plots.Frame) -> list[FirstPicture]:
    """Mask, image, and error bars where there are some, in one row.

    Parameters
    ----------
    readouts : Readouts
        Candidates.
    mask : bool array of their shape
        Those behind the image.
    result : Image
        Image and error bars in the units of the scan.
    frame : Frame
        Of the image.
    """
    row = [mask_picture(frame, readouts, mask), image_picture(frame, result.image)]
    if result.std is not None:
        white, caption = plots.object_top([np.abs(result.image)]), sentence("std_picture")
        row.append(doubt_picture(frame, result.std, plots.scale_top([result.std]), white, "Error bars", caption))
    return row


def image_screen(
    known: KnownSlice,
    verdict: str,
    mask: NDArray[np.bool_],
    made: Image,
    acceleration: float | None,
    words: Mapping[str, str] | None = None,
) -> FirstScreen:
    """What the report of an image begins with.

    Parameters
    ----------
    known : KnownSlice
        The slice.
    verdict : str
        What came out.
    mask : bool array of the shape of the candidates
        Those behind the image.
    made : Image
        Image and error bars in the units of the scan.
    acceleration : float, optional
        None along a trajectory.
    words : mapping of str to str, optional
        Names in the verdict, and what they mean.
    """
    readouts, frame, part = known.slice_model.candidates, frame_of(known), part_of_scan(known.data)
    facts = facts_of(readouts, frame.pixel, known.data.n_coils, acceleration, part)
    return FirstScreen(verdict, first_row(readouts, mask, made, frame), facts, words or {}, reading_of(frame.layout))


def mask_picture(frame: plots.Frame, readouts: Readouts, mask: NDArray[np.bool_], strategy: str = "") -> FirstPicture:
    """K-space with what is measured of it in white, by a strategy that is named where there are several."""
    cells, centre = mask, 0
    if isinstance(readouts, LineReadouts):
        cells = np.broadcast_to(mask[:, np.newaxis], readouts.grid)
        low, high = gapless_run(mask, mask.size // 2)
        centre = high - low + 1
    elif isinstance(readouts, ShotReadouts):
        # cells of the grid (ky, kx) in which some sample of the chosen shots lies
        cells = np.zeros(readouts.grid, dtype=bool)
        places = np.rint(readouts.shots[mask].reshape(-1, 2)).astype(int) + np.array(readouts.grid) // 2
        cells[tuple(places[((places >= 0) & (places < readouts.grid)).all(axis=1)].T)] = True
    caption = sentence("mask_picture", strategy, readouts.name, readouts.unit, int(mask.sum()), mask.size, centre)
    return _picture(plots.Frame(frame.layout), cells.astype(float), 1.0, "Measured", caption)


def image_picture(frame: plots.Frame, image: Array) -> FirstPicture:
    """The magnitude in grey."""
    magnitude = np.abs(image)
    white = plots.object_top([magnitude])
    return _picture(frame, magnitude, white, "Image", sentence("image_picture"), f"{white:.3g}")


def doubt_picture(
    frame: plots.Frame, pixels: NDArray[np.floating], top: float, white: float, title: str, caption: str
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
    readouts: Readouts, pixel: plots.Pixel | None, coils: int, acceleration: float | None, part: str = ""
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
    frame: plots.Frame,
    pixels: NDArray[np.floating],
    top: float,
    title: str,
    caption: str,
    told: str = "",
    *,
    error: bool = False,
) -> FirstPicture:
    """Pixels from 0 to ``top``, which is ``told`` beside the colours; without it colours mean no number."""
    layout, shape = frame.layout, plots.displayed(pixels, frame.layout).shape
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
