"""`adapt` against a simulated scanner, which speaks MRD over the loopback address."""

import json
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mri_design as md
from mri_design import load_phantom
from tests.cli.folders import Run, Spawn, manifest, order, rows, settings
from tests.mrd_clients import Heard, bytes_of, conversation
from tests.simulated_scanner import (
    GoneError,
    connected,
    counter_of,
    header_text,
    main,
    noise_readouts,
    readout,
    stream_of,
    write_file,
)

REPORTED = ("--recipe", "fast.toml", "--strategy", "vd-polynomial", "--lines", 12, "--start", 4)
BLIND = (*REPORTED, "--no-report")


@pytest.fixture(scope="module", autouse=True)
def scans(work: Path) -> None:
    """coils.npz (32 x 24, four coils), the same with noise readouts as coils.h5, and known.toml beside scan.npz."""
    data = load_phantom("brain", shape=(32, 24), n_coils=4, rng=np.random.default_rng(0))
    np.savez(work / "coils.npz", kspace=data.kspace, noise_variance=np.float64(4.9e-5))
    write_file(work / "coils.h5", data.kspace[0], noise_readouts(data.kspace[0], 4.9e-5, 3))
    (work / "known.toml").write_text((work / "quick.toml").read_text().replace("[input]", "[input]\nnoise = 0.007"))


@pytest.fixture
def adapt(work: Path, run: Run, tmp_path: Path) -> Callable[..., tuple[list[dict[str, Any]], Path]]:
    """(scan, the simulated scanner's options, those of adapt) -> the messages, the run's folder."""

    def call(scan: str, faults: tuple[object, ...], *options: object, code: int = 0) -> tuple[Any, ...]:
        port, out, log = free_port(), tmp_path / "run", tmp_path / "log.jsonl"
        scanner = simulated(work / scan, port, "--log", log, *faults)
        result = run("adapt", "--listen", port, "--out", out, *options, code=code)
        scanner.join(20)
        assert result.stdout == ""
        return [json.loads(line) for line in log.read_text().splitlines()], out

    return call


Adapt = Callable[..., tuple[list[dict[str, Any]], Path]]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def simulated(scan: Path, port: int, *options: object) -> threading.Thread:
    """A scanner at work, until it is done or dies as it was told."""

    def measure() -> None:
        with suppress(GoneError, OSError):
            main([str(word) for word in (scan, port, *options)])

    scanner = threading.Thread(target=measure, daemon=True)
    scanner.start()
    return scanner


@pytest.fixture(scope="module")
def blind(work: Path, run: Run) -> list[int]:
    """The lines of the replayed scan."""
    run("design", "scan.npz", *BLIND, "--out", work / "blind", code=0)
    return order(work / "blind")


@pytest.mark.parametrize(
    ("source", "scan", "faults", "options"),
    [
        ("scan.npz", "scan.npz", (), ("--recipe", "known.toml", "--start", 6, "--until-error", 0.17)),
        (
            "scan.npz",
            "scan.npz",
            (),
            ("--recipe", "known.toml", "--start", 6, "--region", "lesion.npy", "--until-interval", "4%"),
        ),
        (
            "coils.h5",
            "coils.npz",
            ("--noise", 3, "--shuffle"),
            ("--recipe", "quick.toml", "--lines", 20, "--start", 16, "--block", 2),
        ),
    ],
    ids=["until an error", "until a region is known", "coils in blocks"],
)
def test_the_decisions_are_those_of_the_replayed_design(
    run: Run, adapt: Adapt, tmp_path: Path, source: str, scan: str, faults: tuple[object, ...], options: tuple[Any, ...]
) -> None:
    replayed, region = tmp_path / "replayed", np.zeros((24, 20), dtype=int)
    region[9:13, 8:12] = 1
    np.save(tmp_path / "lesion.npy", region)
    options = tuple(tmp_path / word if word == "lesion.npy" else word for word in options)
    run("design", source, *options, "--out", replayed, code=0)
    (first, *messages, last), out = adapt(scan, faults, *options)
    asked = [line for message in (first, *messages) for line in message["lines"]]
    assert asked == order(out) == order(replayed) == last["lines"] and len(asked) in range(7, 24)
    for name in ("recon.npy", "std.npy"):
        np.testing.assert_allclose(np.load(out / name), np.load(replayed / name), rtol=1e-4, atol=1e-5)
    assert [message["order"] for message in messages] == [
        *range(len(first["lines"]), len(asked), len(messages[0]["lines"]))
    ]
    assert all(message["seconds"] > 0 for message in messages)
    assert "predicted_error" not in messages[0] and all(message["predicted_error"] < 1 for message in messages[1:])
    assert settings(out).get("ended") == settings(replayed).get("ended")
    assert md.load_run(out).lines == tuple(asked)


@pytest.mark.parametrize("options", [(), ("-s", "input.centre=[22,8]")], ids=["found", "given"])
def test_a_centre_of_kspace_elsewhere_is_sought_and_lines_are_asked_for_around_it(
    run: Run, adapt: Adapt, work: Path, tmp_path: Path, options: tuple[object, ...]
) -> None:
    """The echo is four samples early, and the header's centre is six lines from that of k-space, line 22 of 32."""
    true = np.load(work / "coils.npz")["kspace"]
    np.savez(work / "displaced.npz", kspace=np.roll(true, (6, -4), (2, 3)), noise_variance=np.float64(4.9e-5))
    wanted = ("--recipe", "fast.toml", "--strategy", "vd-polynomial", "--lines", 14, "--start", 8, "--no-report")
    messages, out = adapt("displaced.npz", (), *wanted, *options)
    run("design", "coils.npz", *wanted, "--out", tmp_path / "replayed", code=0)
    assert order(out) == order(tmp_path / "replayed")
    asked = [line for message in messages if message["kind"] == "measure" for line in message["lines"]]
    assert set(asked) >= {(line + 6) % 32 for line in order(out)} and len(asked) <= 14 + (0 if options else 8)
    assert np.load(out / "kspace.npz")["measured"][order(out)].all()


def test_the_folder_is_that_of_a_design_and_what_was_measured_can_be_read(
    adapt: Adapt, run: Run, tmp_path: Path, blind: list[int]
) -> None:
    _, out = adapt("scan.npz", (), *REPORTED)
    assert order(out) == blind
    assert np.flatnonzero(np.load(out / "mask.npy")).tolist() == sorted(blind)
    told = manifest(out)
    assert told["status"] == "converged" and told["lines"] == blind and told["inputs"][0]["name"] == "readouts.mrd"
    assert [row["lines"] for row in rows(out / "latency.csv")[1:]] == [str(line) for line in blind[4:]]
    run("recon", out / "kspace.npz", "--recipe", "fast.toml", "--out", tmp_path / "recon", code=0)
    np.testing.assert_array_equal(np.load(tmp_path / "recon" / "recon.npy"), np.load(out / "recon.npy"))
    assert told["settings"]["geometry"]["pixel_mm"] == [200 / 24, 200 / 20]


def test_the_readouts_can_be_played_again_but_not_into_their_own_folder(
    adapt: Adapt, run: Run, tmp_path: Path, blind: list[int]
) -> None:
    _, out = adapt("scan.npz", ("--noise", 2), *BLIND)
    result = run("adapt", out / "readouts.mrd", *BLIND, "--out", tmp_path / "again", code=0)
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert told[-1]["lines"] == order(tmp_path / "again") == blind
    for option in ("--resume", "--overwrite"):
        before = (out / "readouts.mrd").read_bytes()
        run("adapt", out / "readouts.mrd", *BLIND, "--out", out, option, code=2)
        assert (out / "readouts.mrd").read_bytes() == before


def test_a_line_that_never_comes_is_done_without(adapt: Adapt, blind: list[int]) -> None:
    lost = [blind[1], blind[6]]
    never = ("--never", ",".join(map(str, lost)))
    messages, out = adapt("scan.npz", never, *BLIND, "--timeout", 0.1, "--requests", 2)
    assert len(order(out)) == 12 and not {*order(out)} & {*lost}
    assert [message["lines"] for message in messages if message["kind"] == "lost"] == [[line] for line in lost]


def test_a_client_that_dies_leaves_an_image_of_what_was_measured(adapt: Adapt, blind: list[int]) -> None:
    _, out = adapt("scan.npz", ("--die-after", 7), *BLIND, "--timeout", 0.2, "--requests", 2, code=4)
    assert order(out) == blind[:7]
    assert manifest(out)["status"] != "converged"
    assert np.flatnonzero(np.load(out / "kspace.npz")["measured"]).tolist() == sorted(blind[:7])
    assert {"recon.npy", "mask.npy", "metrics.csv"} <= {path.name for path in out.iterdir()}


def messages(work: Path, lines: Sequence[int]) -> bytes:
    """The header of scan.npz and some lines, as a scanner sends them."""
    kspace = np.load(work / "scan.npz")["kspace"][0]
    return stream_of(kspace, [readout(kspace[:, line], counter_of(line)) for line in lines])


@pytest.mark.parametrize("cut", [0, 20], ids=["between messages", "within a message"])
def test_a_file_that_ends_early_makes_no_complete_design(work: Path, run: Run, tmp_path: Path, cut: int) -> None:
    there = [11, 12, 13, 3, 20]  # some of the lines to start with are not among them
    file = tmp_path / "readouts.mrd"
    file.write_bytes(messages(work, there) + messages(work, [9])[len(messages(work, [])) :][:cut])
    result = run("adapt", file, *BLIND, "--out", tmp_path / "run", code=4)
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["kind"] == "done" and sorted(last["lines"]) == sorted(there)
    assert manifest(tmp_path / "run")["status"] == last["status"]
    assert settings(tmp_path / "run").get("readouts_left_out", 0) == bool(cut)


def test_a_program_talks_to_it_through_pipes(spawn: Spawn, work: Path, tmp_path: Path, blind: list[int]) -> None:
    with spawn("adapt", "-", *BLIND, "--out", tmp_path / "run") as process:
        sent = process.stdin.buffer
        sent.write(messages(work, []))
        sent.flush()
        for told in map(json.loads, process.stdout):
            if told["kind"] == "done":
                break
            sent.write(messages(work, told["lines"]))
            sent.flush()
        assert process.stdout.read() == ""  # it ends although its input was not closed
        said = process.stderr.read()
    assert process.returncode == 0, said
    assert told["lines"] == order(tmp_path / "run") == blind


def test_a_killed_run_goes_on_from_its_readouts_to_the_same_lines(
    adapt: Adapt, work: Path, run: Run, tmp_path: Path, blind: list[int]
) -> None:
    _, out = adapt("scan.npz", (), *BLIND)
    for cut in (200, 5000):  # as if the process had died when that much had been written
        begun = tmp_path / f"begun{cut}"
        begun.mkdir()
        (begun / "readouts.mrd").write_bytes((out / "readouts.mrd").read_bytes()[:cut])
        (begun / "messages.jsonl").write_text("")
        (begun / ".mri-design.json").write_text(json.dumps({"files": ["readouts.mrd", "messages.jsonl"]}))
        run("adapt", out / "readouts.mrd", *BLIND, "--out", begun, code=2)
        run("adapt", out / "readouts.mrd", *BLIND, "--out", begun, "--resume", code=0)
        assert order(begun) == blind


def test_a_complete_scan_is_played_as_if_a_scanner_measured_it(
    work: Path, run: Run, tmp_path: Path, blind: list[int]
) -> None:
    run("adapt", "--play", "scan.npz", *BLIND, "--out", tmp_path / "blind", code=0)
    assert order(tmp_path / "blind") == blind
    words = ("--lines", 9, "--recipe", "known.toml", "--no-report")
    run("adapt", "--play", "coils.npz", "--pace", 0.01, *words, "--out", tmp_path / "played", code=0)
    run("design", "coils.npz", *words, "--out", tmp_path / "replayed", code=0)
    assert order(tmp_path / "played") == order(tmp_path / "replayed")
    for wrong in (("--listen", 0), ("--pace", -1)):
        run("adapt", "--play", "scan.npz", *BLIND, *wrong, "--out", tmp_path / "no", code=2)


def test_design_adapt_and_images_have_the_same_virtual_coils_and_a_scanner_keeps_all(
    work: Path, run: Run, tmp_path: Path
) -> None:
    words = ("--recipe", "quick.toml", "-s", "coils.coil_compression=3", "-s", f"input.noise={4.9e-5**0.5}")
    for verb in ("adapt --play", "design"):
        out = tmp_path / verb[:5]
        run(*verb.split(), "coils.npz", *words, "--lines", 12, "--start", 8, "--out", out, code=0)
    adapted, designed = tmp_path / "adapt", tmp_path / "desig"
    mask, stored = np.load(designed / "mask.npy"), np.load(adapted / "kspace.npz")
    true = np.load(work / "coils.npz")["kspace"][0]
    np.testing.assert_allclose(stored["kspace"][0][:, mask], true[:, mask], atol=1e-5 * np.abs(true).max())
    for name, source in (("own", adapted / "kspace.npz"), ("masked", "coils.npz")):
        run("recon", source, *words, "--mask", designed / "mask.npy", "--out", tmp_path / name, code=0)
    said = {settings(tmp_path / name)["coil_compression"] for name in ("adapt", "desig", "masked")}
    assert len(said) == 1 and order(adapted) == order(designed)
    found, wanted = (np.load(tmp_path / name / "recon.npy") for name in ("masked", "desig"))
    assert np.linalg.norm(found - wanted) < 0.02 * np.linalg.norm(wanted)
    assert np.load(tmp_path / "own" / "recon.npy").shape == wanted.shape


def test_what_lacks_lines_cannot_be_played(work: Path, run: Run, tmp_path: Path) -> None:
    kspace = np.load(work / "scan.npz")["kspace"].copy()
    kspace[..., 3, :] = 0
    np.savez(tmp_path / "half.npz", kspace=kspace, noise_variance=np.float64(4.9e-5))
    run("adapt", "--play", tmp_path / "half.npz", *BLIND, "--out", tmp_path / "run", code=2)
    assert not (tmp_path / "run").exists()


SIGN = """<userParameters><userParameterLong><name>fourierSign</name><value>-1</value></userParameterLong>
</userParameters></ismrmrdHeader>"""


@pytest.mark.parametrize("settled", [True, False])
def test_the_image_and_its_error_bars_go_back_with_their_place(
    work: Path, run: Run, tmp_path: Path, settled: bool
) -> None:
    """As the ismrmrd package reads them; without a place where the header does not settle which side is which."""
    kspace, port, heard = np.load(work / "scan.npz")["kspace"][0], free_port(), list[Heard]()
    data = [readout(kspace[:, line], counter_of(line)) for line in range(kspace.shape[1])]
    place = {"position": (3, -4, 50), "read_dir": (0, 0.6, 0.8), "phase_dir": (1, 0, 0), "slice_dir": (0, 0.8, -0.6)}
    for one, (name, vector) in product(data, place.items()):
        getattr(one, name)[:] = vector
    header = header_text(kspace).replace("</ismrmrdHeader>", SIGN if settled else "</ismrmrdHeader>")
    sent = bytes_of("python-ismrmrd-server", header, data)
    client = threading.Thread(target=lambda: heard.append(conversation(connected(port), [sent])), daemon=True)
    client.start()
    quick = ("--lines", 9, "--start", 6, "--recipe", "quick.toml", "--no-report")
    run("adapt", "--listen", port, *quick, "--out", tmp_path / "run", code=0)
    client.join(20)
    magnitude, deviation = heard[0].images
    assert heard[0].closed and json.loads(heard[0].texts[-1])["kind"] == "done"
    for image, name, series in ((magnitude, "recon.npy", 0), (deviation, "std.npy", 1)):
        np.testing.assert_allclose(image.data[0, 0], np.abs(np.load(tmp_path / "run" / name)), rtol=1e-6)
        head = image.getHead()
        assert (head.image_series_index, head.image_type, head.data_type) == (series, 1, 5)
        assert tuple(head.field_of_view) == pytest.approx((200, 200, 5))
        for name, vector in place.items():
            assert tuple(getattr(head, name)) == pytest.approx(vector if settled else (0, 0, 0))
        assert image.meta["DataRole"]
