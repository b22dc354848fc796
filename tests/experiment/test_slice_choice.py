"""``INPUT#SLICES``, and the coil maps that belong to an input."""

import re
from pathlib import Path

import pytest

from mri_design import Recipe, UsageError
from mri_design.errors import naming_options
from mri_design.experiment import MapsOfScan, SliceChoice, Slices, scan_sources, source_files
from mri_design.experiment.volume import NeighbourCounts, opened_slices
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


def test_maps_scans_and_other_images_belong_to_the_input_that_they_name() -> None:
    maps, of, beside = ["b.h5=maps/b.npy"], ["c.h5=prescan.h5"], ["b.h5=t1.nii", "c.h5=run", "b.h5=phantom:t1w"]
    sources = scan_sources(["a.h5", "a folder/b.h5#1", "a folder/c.h5", "phantom:brain"], "middle", maps, of, beside)
    assert [source.maps for source in sources] == [None, Path("maps/b.npy"), MapsOfScan(Path("prescan.h5")), None]
    assert [source.companions for source in sources] == [(), ("t1.nii", "phantom:t1w"), ("run",), ()]
    assert all(name in sources[1].label for name in ("b.h5#1", "b.npy", "t1.nii", "phantom:t1w"))
    assert all(name in sources[2].label for name in ("c.h5#middle", "prescan.h5", "run"))
    files = ["a.h5", "a folder/b.h5", "maps/b.npy", "a folder/c.h5", "prescan.h5", "phantom:brain"]
    assert source_files(sources) == files


@pytest.mark.parametrize(
    ("maps", "of"),
    [
        *((maps, []) for maps in (["maps.npy"], ["c.h5=maps.npy"], ["a.h5="], ["scan.h5=maps.npy"])),
        (["a.h5=m.npy", "a.h5=n.npy"], []),
        (["a.h5=m.npy"], ["a.h5=c.h5"]),
    ],
)
def test_maps_of_no_input_and_maps_twice_are_wrong_usage(maps: list[str], of: list[str]) -> None:
    with pytest.raises(UsageError):
        scan_sources(["a.h5", "x/scan.h5", "y/scan.h5"], "middle", maps, of)
    with pytest.raises(UsageError):
        scan_sources(["a.h5", "b.h5"], "0", companions=["t1.nii"])


def test_cures_name_counters_by_settings_that_a_recipe_has() -> None:
    every = Recipe.of({"input": {"series": {"contrast": "all"}}})
    cures = list[str]()
    for call in (lambda: NeighbourCounts(frames=1).require(Slices(1)), lambda: opened("phantom:brain", every)):
        with naming_options(), refused("companions" if not cures else "contrast") as caught:
            call()
        cures += re.findall(r"-s (input\.series\.\w+)", caught.value.cure)
    assert len(cures) == 5 and all(Recipe().with_settings([f"{one}=all"]).input.axis for one in cures)


def opened(source: str, recipe: Recipe) -> None:
    with opened_slices(source, recipe):
        pass
