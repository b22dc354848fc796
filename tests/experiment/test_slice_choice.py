"""``INPUT#SLICES``, and the coil maps that belong to an input."""

from pathlib import Path

import pytest

from mri_design import UsageError
from mri_design.experiment import MapsOfScan, SliceChoice, scan_sources, source_files
from tests.refusals import refused


@pytest.mark.parametrize(("default", "expected"), [("middle", [3]), ("all", [0, 1, 2, 3, 4, 5]), ("2", [2])])
def test_without_a_hash_the_default_holds(default: str, expected: list[int]) -> None:
    (source,) = scan_sources(["scan.h5"], default)
    assert source.path == "scan.h5"
    assert source.slices.indices(6) == expected


@pytest.mark.parametrize("text", ["", "a", "1,,2", "-1,0", "3-", "1:4", "2-0", "0,9-7"])
def test_other_words_are_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError):
        SliceChoice(text)


@pytest.mark.parametrize("text", ["6", "2-6", "7-9"])
def test_slices_that_do_not_exist_are_refused(text: str) -> None:
    with refused("slices"):
        SliceChoice(text).indices(6)


def test_maps_belong_to_the_input_that_they_name() -> None:
    maps = ["b.h5=maps/b.npy", "a folder/c.h5=c.npy"]
    sources = scan_sources(["a.h5", "a folder/b.h5#1", "a folder/c.h5", "phantom:brain"], "middle", maps)
    assert [source.maps for source in sources] == [None, Path("maps/b.npy"), Path("c.npy"), None]
    assert sources[1].label == "b.h5#1 with maps b.npy"
    assert source_files(sources) == [
        *("a.h5", "a folder/b.h5", "maps/b.npy", "a folder/c.h5", "c.npy"),
        "phantom:brain",
    ]


def test_maps_of_other_scans_are_named_in_the_same_way() -> None:
    first, second = scan_sources(["a.h5", "b.h5"], "middle", ["b.h5=b.npy"], ["a.h5=prescan.h5"])
    assert first.maps == MapsOfScan(Path("prescan.h5")) and second.maps == Path("b.npy")
    assert first.label == "a.h5#middle with maps of prescan.h5"
    assert source_files([first]) == ["a.h5", "prescan.h5"]
    with pytest.raises(UsageError):
        scan_sources(["a.h5"], "middle", ["m.npy"], ["a.h5=c.h5"])


def test_an_input_may_have_several_other_images() -> None:
    first, second = scan_sources(["a.h5", "x/b.h5"], "0", companions=["b.h5=t1.nii", "a.h5=run", "b.h5=phantom:t1w"])
    assert first.companions == ("run",) and second.companions == ("t1.nii", "phantom:t1w")
    assert second.label == "b.h5#0 with the image t1.nii and the image phantom:t1w"
    with pytest.raises(UsageError):
        scan_sources(["a.h5", "b.h5"], "0", companions=["t1.nii"])


@pytest.mark.parametrize(
    "maps", [["maps.npy"], ["c.h5=maps.npy"], ["a.h5="], ["a.h5=m.npy", "a.h5=n.npy"], ["scan.h5=maps.npy"]]
)
def test_maps_of_nobody_are_wrong_usage(maps: list[str]) -> None:
    with pytest.raises(UsageError):
        scan_sources(["a.h5", "x/scan.h5", "y/scan.h5"], "middle", maps)
