"""What the report of a reconstruction begins with, of one slice or of the one of several that is shown."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation.page import FirstScreen
from mri_design.runs.first_pictures import facts_of, first_row, reading_of
from mri_design.runs.image_sections import frame_of
from mri_design.runs.scan_facts import KnownSamples, KnownScan, NamedImage
from mri_design.scan.data import part_of_scan


def first_screen(
    verdict: str, known: KnownScan | KnownSamples, image: NamedImage, mask: NDArray[np.bool_]
) -> FirstScreen:
    """Verdict, pictures and facts.

    Parameters
    ----------
    verdict : str
        What came out.
    known : KnownScan or KnownSamples
        The slice that is shown.
    image : NamedImage
        Its image.
    mask : bool array
        Lines or samples used; of a trajectory all readouts in ``known`` are.
    """
    readouts, frame = known.slice_model.candidates, frame_of(known)
    used, acceleration = np.ones(readouts.shape, dtype=bool), None
    if isinstance(known, KnownScan):
        used = mask
        acceleration = known.acceleration(np.flatnonzero(mask).tolist())
    return FirstScreen(
        verdict,
        first_row(readouts, used, image.reconstruction, frame),
        facts_of(readouts, frame.pixel, known.data.n_coils, acceleration, part_of_scan(known.data.header)),
        reading=reading_of(frame.layout),
    )
