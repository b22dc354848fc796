from pathlib import Path

import pytest

from mri_design import InputError, UsageError
from mri_design.runs.held_out.progress import ComparisonProgress


def filled(path: Path | None) -> ComparisonProgress:
    row = {"strategy": "random", "lines": 8, "relative_l2": 0.1 + 0.2, "reconstruction_converged": True}
    masks = {"random|8": [3, 1, 2]}
    return ComparisonProgress(path, "me", masks, {"random|8|0|0": row}, {"vd|8|16": 3.0}, {"random|8": False})


def test_what_was_saved_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    filled(path).save()
    assert ComparisonProgress.open(path, "me") == filled(path)


def test_without_a_file_it_begins_empty(tmp_path: Path) -> None:
    fresh = ComparisonProgress.open(tmp_path / "progress.json", "me")
    assert (fresh.masks, fresh.rows, fresh.tuned) == ({}, {}, {})
    assert not list(tmp_path.iterdir())


def test_in_memory_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    filled(None).save()
    assert ComparisonProgress.open(None, "me").rows == {}
    assert not list(tmp_path.iterdir())


def test_another_comparison_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    filled(path).save()
    with pytest.raises(UsageError, match=r"progress\.json is the progress of another comparison"):
        ComparisonProgress.open(path, "you")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b"null", b'{"identity": "me"}', b"\xff\xfe", b'{"identity": "me", "masks": 1}'],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "progress.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="an unreadable file") as caught:
        ComparisonProgress.open(path, "me")
    assert caught.value.cure == "Delete it."


@pytest.mark.parametrize("field", ["masks", "rows", "tuned", "masks_converged"])
def test_a_part_of_the_wrong_kind_is_refused(tmp_path: Path, field: str) -> None:
    path = tmp_path / "progress.json"
    parts = {"masks": "{}", "rows": "{}", "tuned": "{}", "masks_converged": "{}"} | {field: "[]"}
    path.write_text('{"identity": "me", ' + ", ".join(f'"{k}": {v}' for k, v in parts.items()) + "}")
    with pytest.raises(InputError, match="an unreadable file"):
        ComparisonProgress.open(path, "me")


def test_a_mask_without_how_its_design_ended_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    path.write_text('{"identity": "me", "masks": {"a": [1]}, "rows": {}, "tuned": {}, "masks_converged": {}}')
    with pytest.raises(InputError, match="an unreadable file"):
        ComparisonProgress.open(path, "me")


@pytest.mark.parametrize(
    ("images", "masks", "status"),
    [
        ([True], [True], "converged"),
        ([True, False], [True], "1 of 2 reconstructions not converged"),
        ([True], [False, True, False], "2 of 3 masks not converged"),
        ([False], [False, True], "1 of 1 reconstructions and 1 of 2 masks not converged"),
    ],
)
def test_the_status_counts_reconstructions_and_masks(images: list[bool], masks: list[bool], status: str) -> None:
    progress = ComparisonProgress(None, "")
    progress.rows = {str(i): {"reconstruction_converged": flag} for i, flag in enumerate(images)}
    progress.masks_converged = {str(i): flag for i, flag in enumerate(masks)}
    assert progress.status == status
