from collections.abc import Sequence

import numpy as np
import pytest

from mri_design import KSpaceData, load_phantom
from mri_design.runs.scan_facts import level_settings, level_summary, simulated_from, simulation_summary


@pytest.mark.parametrize(("name", "expected"), [("t2w", "from images"), ("brain", "from ellipses")])
def test_simulated_scans_say_from_what(name: str, expected: str) -> None:
    assert simulated_from(load_phantom(name, shape=(16, 16), rng=np.random.default_rng(0))) == expected


def test_other_scans_say_nothing() -> None:
    assert simulated_from(KSpaceData(np.ones((1, 1, 4, 4), np.complex64), np.ones(4, bool))) == ""


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        ([], {}),
        (["", ""], {}),
        (["from images", "from images"], {"k-space": "simulated from images"}),
        (["from images", ""], {"k-space": "simulated from images (1 of 2 images)"}),
    ],
)
def test_a_report_says_how_many_scans_were_simulated(origins: Sequence[str], expected: dict[str, str]) -> None:
    assert simulation_summary(origins) == expected


def test_noise_is_told_as_a_standard_deviation() -> None:
    assert level_settings(0.25, 3.0, 1.0) == {"noise_sd_per_real_component": 0.5, "signal_level": 3.0}
    assert level_summary(0.25, 3.0, 1e9) == {"noise sd per real component": 0.5e9, "signal level": 3.0e9}
