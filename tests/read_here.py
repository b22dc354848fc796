"""Files that a child process would read are read in the process of the tests.

A child takes half a second; that verbs and `read` begin one is tested in
`tests/scan/io/test_isolated.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from mri_design.scan.io import ReadOptions, SliceReader, Source, formats
from mri_design.scan.io.source import Content, Summary


@dataclass(frozen=True)
class SourceHere(Source):
    """The answers of an `IsolatedSource` without a child process."""

    path: Path
    options: ReadOptions
    library: str

    def load(self) -> Content:
        """All samples."""
        with formats.opened(self.path, self.options, isolated=False) as source:
            return source.load()

    def summary(self) -> Summary:
        """The samplings, and the samples of one slice."""
        with formats.opened(self.path, self.options, isolated=False) as source:
            return source.summary()

    @contextmanager
    def slice_reader(self) -> Iterator[SliceReader]:
        """The slices one by one."""
        with formats.opened(self.path, self.options, isolated=False) as source, source.slice_reader() as slices:
            yield slices


@pytest.fixture(scope="module", autouse=True)
def read_here() -> Iterator[None]:
    """Imported into the conftest of a package, it holds for all tests in there."""
    with mock.patch.object(formats, "ISOLATED", SourceHere):
        yield
