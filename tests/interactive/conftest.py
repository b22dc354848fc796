"""One small scan, its design and its image, made once: what nobody changes."""

import pytest

import mri_design as md

RECIPE = {"input": {"matrix": 32}, "phase": {"model": "modulus"}}
RECIPE["prior"] = [{"kind": "pixels", "rate": 100.0, "tau_limit": 0.4}, {"kind": "differences", "rate": 10.0}]


@pytest.fixture(scope="package")
def scan() -> md.LoadedScan:
    return md.load("phantom:t2w", recipe=RECIPE)


@pytest.fixture(scope="package")
def design(scan: md.LoadedScan) -> md.ScanDesign:
    return scan.design(lines=14)


@pytest.fixture(scope="package")
def image(design: md.ScanDesign) -> md.ScanImage:
    return design.reconstruct()
