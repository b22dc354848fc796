import json
from pathlib import Path

import pytest

from mri_design import UsageError
from mri_design.evaluation.run_folder import RunFolder, finished_status
from mri_design.evaluation.run_status import CHECKPOINT, PROGRESS


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "mine")


def test_an_empty_folder_is_free(folder: RunFolder) -> None:
    assert finished_status(folder, "me") is None


def test_the_same_run_tells_how_it_ended(folder: RunFolder) -> None:
    folder.write_manifest({"status": "not converged", "settings": {"identity": "me"}})
    assert finished_status(folder, "me") == "not converged"


@pytest.mark.parametrize(
    "manifest",
    ["{", "[]", "{}", json.dumps({"status": "converged", "settings": {"identity": "you"}}), '{"settings": 3}', "\xff"],
)
def test_anything_else_is_refused(folder: RunFolder, manifest: str) -> None:
    (folder.path / "manifest.json").write_bytes(manifest.encode("latin-1"))
    with pytest.raises(UsageError, match="mine holds a finished run; give another --out"):
        finished_status(folder, "me")


@pytest.mark.parametrize(("present", "own"), [(CHECKPOINT, PROGRESS), (PROGRESS, CHECKPOINT), (PROGRESS, "")])
def test_the_beginning_of_another_kind_of_run_is_refused(folder: RunFolder, present: str, own: str) -> None:
    (folder.path / present).write_bytes(b"")
    with pytest.raises(UsageError, match="an unfinished run"):
        finished_status(folder, "me", own=own)
    assert finished_status(folder, "me", own=present) is None
