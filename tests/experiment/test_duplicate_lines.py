"""``[input]`` of a recipe reaches the reader of raw data."""

from pathlib import Path

import ismrmrd
import numpy as np
import pytest

from mri_design import InputError, load_recipe
from mri_design.experiment import load_input
from tests.refusals import refused

HEADER = b"""<?xml version="1.0"?>
<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">
 <experimentalConditions><H1resonanceFrequency_Hz>127000000</H1resonanceFrequency_Hz></experimentalConditions>
 <encoding>
  <encodedSpace><matrixSize><x>16</x><y>12</y><z>1</z></matrixSize>
   <fieldOfView_mm><x>200</x><y>200</y><z>5</z></fieldOfView_mm></encodedSpace>
  <reconSpace><matrixSize><x>16</x><y>12</y><z>1</z></matrixSize>
   <fieldOfView_mm><x>200</x><y>200</y><z>5</z></fieldOfView_mm></reconSpace>
  <encodingLimits></encodingLimits>
  <trajectory>cartesian</trajectory>
 </encoding>
</ismrmrdHeader>"""


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """An MRD file of ones in which line 5 comes again, as threes."""
    path = tmp_path / "raw.h5"
    file = ismrmrd.Dataset(str(path), "dataset", mode="w")
    file.write_xml_header(HEADER)
    for line, value in (*((line, 1) for line in range(12)), (5, 3)):
        readout = ismrmrd.Acquisition()
        readout.resize(16, 1)
        readout.data[:] = value
        readout.center_sample = 8
        readout.idx.kspace_encode_step_1 = line
        file.append_acquisition(readout)
    file.close()
    return path


@pytest.mark.slow
def test_a_line_that_comes_twice_needs_a_recipe_that_says_what_to_do(twice: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_input(str(twice), load_recipe(None))
    assert caught.value.field.endswith("data[12]: kspace_encode_step_1")
    mine = tmp_path / "mine.toml"
    for policy, value in (("average", 2), ("first", 1), ("last", 3)):
        mine.write_text(f'[input]\nduplicates = "{policy}"\n')
        kspace = load_input(str(twice), load_recipe(mine)).kspace
        np.testing.assert_allclose(kspace[0, 0, 5], value, rtol=1e-6)
        np.testing.assert_allclose(kspace[0, 0, 6], 1, rtol=1e-6)


def test_the_contrast_that_a_recipe_names_is_the_one_that_is_asked_for(twice: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[input]\nduplicates = "last"\ncontrast = 1\n')
    recipe = load_recipe(mine)
    assert recipe.input.counters == {"contrast": 1}
    with pytest.raises(InputError) as caught:
        load_input(str(twice), recipe)
    assert caught.value.field.endswith("dataset/data: contrast")
    mine.write_text("[input]\nset = -1\n")
    with refused("recipe mine.toml: input.set"):
        load_recipe(mine)
