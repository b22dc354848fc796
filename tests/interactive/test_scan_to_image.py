"""One object from scan to image: the numbers are those of the commands, and nothing is hidden."""

import json
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.evaluation import read_csv_texts
from mri_design.runs.measure import row_of
from tests.command_line import called
from tests.interactive.conftest import RECIPE
from tests.refusals import refused
from tests.stored_runs import differences
from tests.undrawn import undrawn

PLAIN, MASK = {"method": "zero-filled"}, np.abs(np.arange(32) - 16) < 6


def test_lines_and_image_are_those_of_the_command(design, tmp_path):
    recipe_file = tmp_path / "small.toml"
    recipe_file.write_text(
        "input.matrix = 32\n[[prior]]\nkind = 'pixels'\nrate = 100.0\ntau_limit = 0.4\n"
        "[[prior]]\nkind = 'differences'\nrate = 10.0\n[phase]\nmodel = 'modulus'\n"
    )
    run = tmp_path / "run"
    words = ["design", "phantom:t2w", "--lines", "14", "--recipe", str(recipe_file), "--out", str(run), "--no-report"]
    assert called(words).exit_code == 0
    assert list(design.lines) == json.loads((run / "manifest.json").read_text())["lines"]
    np.testing.assert_array_equal(design.mask, np.load(run / "mask.npy"))
    np.testing.assert_array_equal(design.reconstruct().array, np.load(run / "recon.npy"))
    np.testing.assert_array_equal(design.reconstruct().std, np.load(run / "std.npy"))
    words = ["recon", "phantom:t2w", "--mask", str(run / "mask.npy"), "--recipe", str(recipe_file), "--no-report"]
    assert called([*words, "--out", str(tmp_path / "recon")]).exit_code == 0
    again = md.load("phantom:t2w", recipe=RECIPE).reconstruct(design.mask)
    np.testing.assert_array_equal(again.array, np.load(tmp_path / "recon" / "recon.npy"))
    np.testing.assert_array_equal(again.std, np.load(tmp_path / "recon" / "std.npy"))


def test_another_method_goes_by_the_lines_of_the_design(scan: md.LoadedScan, design: md.ScanDesign) -> None:
    assert 0.3 < design.predicted_error / design.reconstruct().errors.relative_l2_complex < 3
    plain = design.reconstruct("zero-filled")
    assert plain.method == "zero-filled" and plain.std is None
    np.testing.assert_array_equal(plain.array, design.reconstruct().zero_filled)
    np.testing.assert_array_equal(plain.array, scan.reconstruct(design.lines, method="zero-filled").array)


def test_errors_are_against_the_image_that_is_given(scan: md.LoadedScan, tmp_path: Path) -> None:
    truth = np.abs(scan.data.reference[0])
    np.save(tmp_path / "truth.npy", truth)
    lines = range(10, 22)
    for given in (truth, 3 * truth, tmp_path / "truth.npy"):
        image = scan.reconstruct(lines, method="zero-filled", reference=given)
        size = np.abs(image.array)
        by_hand = md.measure(size, np.vdot(truth, size) / np.vdot(truth, truth) * truth)
        assert image.errors.relative_l2 == pytest.approx(by_hand.relative_l2, rel=1e-5)
    saved = json.loads((image.save(tmp_path / "run") / "manifest.json").read_text())
    assert "truth.npy" in saved["settings"]["reference_source"]


def test_what_is_saved_is_written_once_unless_it_may_be_again(design, image, tmp_path):
    folder = design.save(tmp_path / "design")
    assert not (folder / "report.html").exists()
    with pytest.raises(md.UsageError):
        design.save(folder)
    with undrawn():
        page = image.report(tmp_path / "design", overwrite=True)
    assert page.read_text().startswith("<!DOCTYPE html>")


KINDS = {
    "lines": {"lines": 14},
    "until": {"until_error": 0.15},
    "map": {"lines": 14, "recipe": {**RECIPE, "reconstruction": {"method": "map"}}},
    "plane": {"lines": 120, "encoding": "plane", "block": 20},
    "radial": {"lines": 5, "encoding": "radial"},
    "spiral": {"lines": 5, "encoding": "spiral", "strategy": "golden"},
    "mask": {"lines": 12, "strategy": "vd-polynomial"},
}


def made_of(scan: md.LoadedScan, kind: str) -> md.ScanDesign | md.ScanImage:
    """A design, or an image: of lines with draws, of several slices, by another method."""
    if kind in KINDS:
        return scan.design(**KINDS[kind])
    if kind == "slices":
        stack = md.ImageStack(np.stack([np.abs(scan.data.reference[0]) * factor for factor in (1, 2)]))
        return md.load(stack, recipe=RECIPE).reconstruct(range(8, 24), draws=4, slices="all")
    noise_map = {"method": "least-squares", "recipe": {**RECIPE, "reconstruction": {"noise_map": True}}}
    return scan.reconstruct(range(8, 24), **({"draws": 4} if kind == "image" else noise_map))


@pytest.mark.parametrize("kind", [*KINDS, "image", "slices", "least squares"])
def test_what_is_saved_is_read_as_the_same_object(scan, tmp_path, kind):
    made = made_of(scan, kind)
    found = md.load_run(made.save(tmp_path / "run"))
    assert type(found) is type(made) and found.facts == made.facts and repr(found) == repr(made)
    image, same = (one.image if isinstance(one, md.ScanDesign) else one for one in (made, found))
    assert list(differences(image, same)) == []
    for written in (image, same):
        written.to_nifti(tmp_path / f"{written is same}.nii")
    assert (tmp_path / "False.nii").read_bytes() == (tmp_path / "True.nii").read_bytes()
    if image.draws is not None:
        np.testing.assert_array_equal(same.sample(4), made.draws)
        inside = np.abs(made.array) > 0.5 * np.abs(made.array).max()
        assert row_of(found.measure(inside)[0]) == row_of(made.measure(inside)[0])
    else:
        with pytest.raises(md.UsageError):
            same.sample(4)
    if kind in KINDS:
        assert (found.trace.lines, found.predicted_error) == (made.trace.lines, made.predicted_error)
        found.plot()
        with pytest.raises(md.UsageError):
            found.reconstruct("zero-filled")
    with pytest.raises(md.UsageError):
        found.save(tmp_path / "run", overwrite=True)  # nothing is removed for what cannot be written


def test_only_folders_are_read() -> None:
    with pytest.raises(md.InputError):
        md.load_run(3)


def test_arrays_are_scans_too(scan: md.LoadedScan, image: md.ScanImage) -> None:
    kspace = scan.data.kspace[0, 0]
    held = md.load(kspace, recipe={**RECIPE, "input": {"noise": scan.data.noise_variance**0.5}})
    np.testing.assert_array_equal(held.data.kspace[0, 0], kspace)
    ours, theirs = held.reconstruct(MASK), scan.reconstruct(MASK)
    np.testing.assert_allclose(ours.array, theirs.array, atol=1e-3 * np.abs(theirs.array).max())
    other = md.load(kspace * 2, recipe=RECIPE)
    assert other.source != held.source, "what the scan is called tells its samples"
    for given in (Tensor(scan.kspace), scan.kspace.tolist(), kspace.astype(complex)):
        np.testing.assert_allclose(md.load(given, recipe=RECIPE).kspace, scan.kspace, rtol=1e-6)
    with pytest.raises(md.InputError):
        md.load(Tensor(kspace, of_a_gradient=True))
    stack = md.ImageStack(np.abs(scan.data.reference).astype(np.float32))
    assert md.load(stack, recipe=RECIPE).data.grid_shape == (32, 32) and md.load(scan.data).data is scan.data


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda scan: scan.design(99), "lines"),
        (lambda scan: scan.design("8"), "lines"),
        (lambda scan: scan.compare(lines=12, draws=0), "draws"),
        (lambda scan: scan.reconstruct(companions=5), "companions"),
        (lambda scan: scan.design(acceleration=0.5), "acceleration"),
        (lambda scan: scan.design(8, strategy="calibratd"), "strategy"),
        (lambda scan: scan.design(8, until_error=-1), "until_error"),
        (lambda scan: scan.design(8, encoding="planes"), "encoding"),
        (lambda scan: scan.design(8, slices=[0, 3]), "slices"),
        (lambda scan: scan.design(8, seed=-1), "seed"),
        (lambda scan: scan.reconstruct(slices=3), "slices"),
        (lambda scan: scan.reconstruct(method="means"), "method"),
        (lambda scan: scan.reconstruct(draws=-1), "draws"),
        (lambda scan: scan.reconstruct([40]), "lines"),
        (lambda scan: md.load("phantom:lf-gre").reconstruct([0, 98]), "lines"),
        (lambda scan: scan.reconstruct(reference=np.zeros((32, 32))), "reference"),
        (lambda scan: md.load(np.ones((8, 8))), "source"),
        (lambda scan: md.load("phantom:t2w", matrix=2), "matrix"),
        (lambda scan: md.load("phantom:t2w", noise=-1.0), "noise"),
        (lambda scan: md.load("phantom:t2w", recipe={"design": {"strategy": "x"}}), "recipe: design.strategy"),
    ],
)
def test_errors_name_the_argument_that_they_are_about(scan, call, field):
    with refused(field):
        call(scan)


def test_files_are_refused_by_the_argument(design: md.ScanDesign, image: md.ScanImage, tmp_path: Path) -> None:
    for call, field in (
        (lambda: image.report(tmp_path / "no" / "run"), "folder"),
        (lambda: design.save(tmp_path / "no" / "run"), "folder"),
        (lambda: image.to_nifti(tmp_path / "no" / "image.nii"), "path"),
        (lambda: design.to_csv(tmp_path / "no" / "lines.csv"), "path"),
    ):
        with refused(field):
            call()
    for field_of_view in (0.2, (0.2,), (0.0, 0.2), ("a", "b")):
        with refused("field_of_view"):
            image.to_nifti(tmp_path / "image.nii", field_of_view=field_of_view)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def three(scan: md.LoadedScan) -> md.LoadedScan:
    """Three slices, each a little dimmer."""
    one = scan.data.kspace
    return md.load(np.concatenate([one, 0.8 * one, 0.6 * one]), dims="slice,coil,ky,kx", recipe=RECIPE)


def test_several_slices_make_a_volume(three: md.LoadedScan, tmp_path: Path) -> None:
    volume = three.reconstruct(MASK, slices="all", method="map")
    assert volume.numbers == (0, 1, 2) and volume.std is None
    folder = volume.save(tmp_path / "volume")
    found = [float(row["found_error"]) for row in read_csv_texts(folder / "metrics.csv") if row["method"] == "map"]
    assert len(found) == 4 and volume.error.found == pytest.approx(np.mean(found[:3]), rel=1e-4)
    assert len(volume.plot().axes) == 3 and volume._repr_html_().count("<img") == 3
    for call in (volume.sample, volume.interval):
        with pytest.raises(md.UsageError):
            call()


def test_several_slices_share_the_mask_of_a_design(three: md.LoadedScan) -> None:
    design = three.design(10, strategy="low-pass", slices=[0, 2])
    assert len(design.lines) == 10 and design.result.numbers == [2, 0]
    assert design.reconstruct("zero-filled").known.scan.name == design.reconstruct().known.scan.name == "scan[2]"


def test_shots_are_chosen_and_scans_along_them_reconstructed(scan: md.LoadedScan, tmp_path: Path) -> None:
    pytest.importorskip("finufft")
    design = scan.design(5, encoding="radial", strategy="half-turn", recipe={**RECIPE, "reconstruction": PLAIN})
    assert design.mask.sum() == 5
    with pytest.raises(md.UsageError):
        design.reconstruct("map")
    spokes = md.load(design.save(tmp_path / "run") / "trajectory.npz", recipe=RECIPE)
    assert isinstance(spokes.data, md.TrajectoryData)
    image = spokes.reconstruct([0, 2, 4], method="zero-filled")
    assert image.method == "gridded" and image.mask.tolist() == [True, False, True, False, True]
    with pytest.raises(md.InputError):
        spokes.design(4)
    two = md.load(spokes.data.only(np.arange(5) < 2), recipe=RECIPE).calibrated.slice_model()
    assert np.isfinite(md.reconstruct(two, method="zero-filled").image).all()


def test_a_design_goes_to_a_table_and_its_image_to_dicom(design, image, tmp_path):
    design.to_csv(tmp_path / "order.csv")
    rows = (tmp_path / "order.csv").read_text().splitlines()
    assert [int(row.split(",")[1]) for row in rows[1:]] == list(design.lines)
    pydicom = pytest.importorskip("pydicom")
    image.to_dicom(tmp_path / "image.dcm", field_of_view=(0.24, 0.12))
    assert [float(size) for size in pydicom.dcmread(tmp_path / "image.dcm").PixelSpacing] == [7.5, 3.75]


class Tensor:
    """Only what NumPy asks for, as tensors of other libraries offer it."""

    def __init__(self, array: np.ndarray, *, of_a_gradient: bool = False) -> None:
        self.array, self.of_a_gradient = array, of_a_gradient

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        if self.of_a_gradient:
            raise RuntimeError("Use tensor.detach().numpy() instead.")
        return np.array(self.array, dtype=dtype)


def test_coil_maps_come_from_a_file_an_array_a_method_or_another_scan(tmp_path, monkeypatch):
    coils = md.load("phantom:brain", recipe={**RECIPE, "input": {"matrix": 32}, "simulation": {"coils": 3}})
    known = coils.data.coil_maps
    np.save(tmp_path / "maps.npy", known[0])
    np.save(tmp_path / "prescan.npy", coils.kspace)
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in (tmp_path / "maps.npy", "~/maps.npy", known, known[0].astype(complex), Tensor(known)):
        found = md.load(coils.kspace, coil_maps=given, recipe=RECIPE).data.coil_maps
        np.testing.assert_allclose(found, known, atol=1e-6)
    for wrong in (known[0, :2], known[0, ::-1], np.ones(3), "maps"):
        with pytest.raises(md.InputError) as refused:
            md.load(coils.kspace, coil_maps=wrong, recipe=RECIPE)
        assert refused.value.field in ("coil_maps", "maps")
    for method, lines in (("espirit", 24), ("espirit:16", 16), ("nlinv", 24)):
        image = md.load(coils.kspace, coil_maps=method, recipe=RECIPE).reconstruct(method="zero-filled")
        found = image.known.scan.provenance.maps
        assert method.startswith(found.source) and found.lines == lines
    for other in (md.load(tmp_path / "prescan.npy", recipe=RECIPE), md.load(coils.kspace, recipe=RECIPE), coils):
        scan = md.load(coils.kspace * 2, coil_maps=other, recipe=RECIPE)
        alike = np.abs(np.sum(scan.data.coil_maps[0] * known[0].conj(), axis=0))
        assert np.mean(alike[np.abs(coils.data.reference[0]) > 0.1]) > 0.95
        assert scan.reconstruct(method="zero-filled").array.shape == (32, 32)


def test_noise_is_given_as_a_standard_deviation_or_as_samples(scan: md.LoadedScan) -> None:
    variance = scan.data.noise_variance
    for level in (np.sqrt(variance), np.array(variance**0.5)):
        given = md.load(scan.kspace, noise=level, recipe=RECIPE)
        assert given.calibrated.noise_variance == pytest.approx(variance)
    image, same = (one.reconstruct(range(10, 22)).array for one in (scan, given))
    np.testing.assert_allclose(same, image, rtol=1e-3, atol=1e-4)
    rng = np.random.default_rng(0)
    samples = np.sqrt(variance) * (rng.standard_normal((1, 4000)) + 1j * rng.standard_normal((1, 4000)))
    measured = md.load(scan.kspace, noise=Tensor(samples), recipe=RECIPE)
    assert measured.calibrated.noise_variance == pytest.approx(variance, rel=0.1)
    for wrong, recipe in ((0, RECIPE), (np.array(-1.0), RECIPE), (samples, {**RECIPE, "input": {"noise": 1}})):
        with refused("noise"):
            md.load(scan.kspace, recipe=recipe, noise=wrong)


def test_a_mask_in_any_type_says_which_lines_are_used_or_were_measured(scan: md.LoadedScan) -> None:
    wanted = scan.reconstruct(np.flatnonzero(MASK), method="zero-filled")
    samples = np.repeat(MASK[:, None], 32, axis=1)
    for given in (MASK, MASK.astype(np.float32), MASK.astype(int).tolist(), MASK[None], samples):
        image = scan.reconstruct(given, method="zero-filled")
        np.testing.assert_allclose(image.array, wanted.array, atol=1e-6 * np.abs(wanted.array).max())
        part = md.load("phantom:t2w", mask=given, recipe=RECIPE)
        np.testing.assert_array_equal(part.data.measured, MASK)
        assert not part.kspace[:, :, ~MASK].any() and part.kspace[:, :, MASK].all()
        np.testing.assert_array_equal(part.reconstruct(method="zero-filled").array, wanted.array)
    assert scan.mask.all() and scan.mask.shape == (32,)
    for wrong in (MASK[1:], [40], np.full(32, 0.5), np.zeros(32)):
        with refused("mask"):
            md.load("phantom:t2w", mask=wrong, recipe=RECIPE)


def test_intervals_hold_the_truth_about_as_often_as_they_should() -> None:
    head = md.load("phantom:brain", recipe={**RECIPE, "input": {"matrix": 64}})
    image = head.reconstruct(sorted({*range(0, 64, 4), *range(26, 38)}))
    truth = np.abs(image.reference)
    inside = truth > 0.1 * truth.max()
    for level in (0.5, 0.8, 0.95):
        low, high = image.interval(level)
        assert low.shape == truth.shape and low.min() >= 0 and np.all(low <= high)
        held = np.mean((low <= truth) & (truth <= high), where=inside)
        assert level - 0.2 < held < level + 0.15, (level, held)
    np.testing.assert_array_equal(image.interval(95), image.interval(0.95))
    for wrong in (1.2, 0, 101):
        with refused("level"):
            image.interval(wrong)


def test_draws_are_made_when_they_are_wanted(scan: md.LoadedScan, image: md.ScanImage) -> None:
    drawn = image.sample(32)
    assert drawn.shape == (32, 32, 32) and drawn.dtype == np.complex64
    deviation = np.sqrt(np.mean(np.abs(drawn - image.array) ** 2))
    assert deviation == pytest.approx(np.sqrt(np.mean(image.std.astype(float) ** 2)), rel=1e-3)
    lines = range(10, 22)
    plain, made = scan.reconstruct(lines), scan.reconstruct(lines, draws=4)
    np.testing.assert_allclose(plain.sample(4), made.draws, rtol=1e-5, atol=1e-6)
    other = plain.sample(4, seed=7)
    assert not np.allclose(other, made.draws)
    np.testing.assert_array_equal(other, plain.sample(4, seed=7))
    for call in (lambda: image.sample(0), lambda: image.sample(3, seed=-1)):
        with pytest.raises(md.InputError):
            call()
    plain = scan.reconstruct(lines, method="zero-filled")
    for call in (plain.sample, plain.interval):
        with pytest.raises(md.UsageError):
            call()


def test_a_comparison_that_is_read_is_the_one_that_was_saved(scan: md.LoadedScan, tmp_path: Path) -> None:
    names, known = ["vd-polynomial", "low-pass"], {**RECIPE, "reconstruction": PLAIN}
    made = scan.compare(names, lines=[12, 16], draws=2, methods=["zero-filled", "least-squares"], recipe=known)
    found = md.load_run(made.save(tmp_path / "run"))
    assert isinstance(found, type(made)) and repr(found) == repr(made)
    assert made.methods[0]["relative_l2"] == pytest.approx(made.errors[made.methods[0]["strategy"]][12])
    assert list(differences(made, found)) == [] and found.errors == made.errors
    with pytest.raises(md.UsageError):
        found.save(tmp_path / "again")
    (tmp_path / "run" / "result.npz").write_bytes(b"PK")
    with refused("run/result.npz"):
        md.load_run(tmp_path / "run")


def test_a_comparison_has_strategies_of_its_own(scan: md.LoadedScan) -> None:
    quick = {**RECIPE, "reconstruction": PLAIN, "inference": {"loops": 1}}
    compared = scan.compare(lines=12, recipe=quick, draws=1)
    assert {"calibrated", "low-pass", "regular", "vd-polynomial:1 draw=systematic"} < set(compared.errors)
    assert compared.methods == []
    with pytest.raises(md.UsageError):
        scan.compare(["low-pass"], lines=12, methods=["methd"], recipe=quick)
    begun = scan.compare(["golden-ratio"], lines=12, start=6, recipe=quick)
    order = begun.result.study.mask_lines("golden-ratio", 12, 0, 0)
    middle = begun.result.study.tests[0].slice_model.shape[0] // 2
    assert set(order[:6]) == set(range(middle - 3, middle + 3))


def test_a_notebook_shows_pictures_and_facts_from_the_object_alone(scan, design, image) -> None:
    compared = scan.compare(["golden-ratio"], lines=12, draws=1, recipe={**RECIPE, "reconstruction": PLAIN})
    for shown, pictures in ((scan, 1), (design, 2), (image, 2), (compared, 2)):
        page = shown._repr_html_()
        assert page.count("data:image/png;base64,") >= pictures and "http" not in page
        assert any(text in repr(shown) for text in shown.facts.values())
    assert len(compared.plot().axes) == 1 and {row["strategy"] for row in compared.rows} == set(compared.errors)
    assert design.plot().axes
