"""Every code of a scan's provenance has words."""

from dataclasses import replace
from itertools import product
from typing import get_args, get_type_hints

import numpy as np
import pytest

from mri_design.calibration.noise import NoiseEstimate, Source
from mri_design.runs.provenance import centre_words, left_out, left_out_text, part_of_scan, phrase
from mri_design.scan import Centre, KSpaceData, MapsOrigin, NoiseOrigin, NoiseSamples, Provenance

ESTIMATE = NoiseEstimate(np.eye(2), (Source("air", np.array([1.0, 4.0])), Source("ends", np.ones(2))), "signal", 0.5)
CODES = {name: get_args(hint) for name, hint in get_type_hints(NoiseOrigin, localns={"NoiseEstimate": object}).items()}
MEASURED = NoiseSamples(file="noise.npy", readouts=3, samples=64, dwells=(2.0, 4.0), bandwidth=0.8, averages=2)
SCAN = KSpaceData(np.ones((1, 1, 8, 8), np.complex64), np.ones(8, bool), header={"file": "a.npy"})
LEFT_OUT: dict[str, tuple] = {
    "coils_dropped": ((2,), ((3, 0),)),
    "readouts_skipped": (2, 64),
    "readouts_of_fewer_channels": (2, 64, (1,), 4),
    "calibration_skipped": (24, True),
    "axes": (("ky", "kx", "coil"), ("in turn ", 2)),
    "coordinates_skipped": (),
    "members_not_read": ("remarks",),
    "identifiers_left_out": ("StudyID",),
    "field_of_view_in_file": (True, (0.2, 0.2, 0.005)),
    "impossible_sizes": (0.001,),
    "centre_beyond_grid": (("kspace_encode_step_1", 0, 31, 64, 0, 300),),
}
READ_AS: dict[str, tuple] = {
    "slices_present": (0, 7),
    "centre_beyond_samples": (99, 0, 16),
    "calibration_lines": (24,),
    "calibration_scan": (24,),
    "duplicates": ("average", 3, "line", 2),
    "centre_in_file": ((1, 32), (2, 8)),
    "oversampling_removed": (128, 400.0, 64, 200.0),
    "partial_echo": ("0-11",),
    "trajectory_unit": ("cycles per pixel", 0.5, (64, 64)),
    "pixel_size": (),
    "sidecar": ("head.json", "no JSON"),
    "frames": ("distances", 5.0),
}


def test_every_source_and_doubt_of_noise_has_words_of_its_own() -> None:
    known = NoiseOrigin(given=1.0, measured=MEASURED, estimate=ESTIMATE, slices=(3, "slices"), positions=(0, 3, 64))
    said = {
        (source, doubt, limit): phrase("noise", replace(known, source=source, doubt=doubt, limit=limit, raised=2.0))
        for source, doubt, limit in product(CODES["source"], CODES["doubt"], CODES["limit"])
    }
    assert len({*said.values()}) == len(said) and all(said.values())
    alone = replace(ESTIMATE, correlations=None, alone=0.9)
    places = [phrase("noise_places", replace(known, source="scan", estimate=one)) for one in (ESTIMATE, alone)]
    assert len({*places, phrase("noise_places", replace(known, source="given"))}) == 3
    unused = get_args(get_type_hints(NoiseSamples)["unused"])
    assert len({phrase("noise_samples", replace(MEASURED, unused=why, channels=(1, 2))) for why in unused}) == 3


def test_every_source_of_coil_maps_has_words_of_its_own() -> None:
    sources = get_args(get_type_hints(MapsOrigin, localns={"CoilMapEstimate": object})["source"])
    made = [MapsOrigin(source=source, lines=24) for source in sources if source != "unknown"]
    given = [MapsOrigin(source="given", file="a.npy", sets=2, scaled=(0.5, 2.0), explained=0.5, bad=True)]
    of_scan = [MapsOrigin(source="given", file="b.h5", of=replace(made[2], error=e)) for e in (0.3, float("nan"))]
    said = [phrase("maps", one) for one in (*made, *given, *of_scan, MapsOrigin(source="nlinv", lines=9, samples=70))]
    assert len({*said}) == len(said) and all(said)
    assert phrase("maps_cure", True, ()) and phrase("maps_cure", False, ("motion", "coils", "centre", "axes"))


@pytest.mark.parametrize(
    ("centre", "noticeable"),
    [
        (Centre((8, 8), (4, 4), "measured"), False),
        (Centre((8, 8), (4, 4), "assumed", gap=6), True),
        (Centre((8, 8), (3, 4), "given", shown=(5, 5)), True),
        (Centre((8, 8), (0, 0), "measured", gap=2, turned=True), True),
    ],
)
def test_of_a_centre_there_are_words_where_a_user_has_to_know_of_it(centre: Centre, noticeable: bool) -> None:
    assert bool(centre_words(SCAN.known(centre=centre))) == noticeable


def test_what_was_left_out_is_known_and_a_series_that_was_asked_for_is_no_news() -> None:
    series = {"repetition": (0, (0, 1))}
    scan = SCAN.known(
        left_out=LEFT_OUT,
        series=series,
        slice=(2, 5),
        doubted_lines=(3, 5),
        dead_coils=(1,),
        combined=(8, 4, 0.01, 0.2),
    )
    assert list(left_out(scan)) == [*LEFT_OUT, "repetition", "lines_of_noise"]
    assert all(phrase(code, *facts) for code, facts in READ_AS.items())
    assert "repetition" not in left_out(scan, asked={"repetition"})
    assert left_out_text(scan) and part_of_scan(scan) and not part_of_scan(SCAN) and phrase("coils", scan.provenance)
    assert not phrase("coils", Provenance()) and phrase("coils", Provenance(silent_lines=((1, 3),)))
    assert all(phrase("simulated", kind) for kind in ("images", "ellipses", "ellipsoids"))
