"""The golden runs: command lines and recipes, small enough for a second or two each."""

from __future__ import annotations

from typing import NamedTuple


class GoldenRun(NamedTuple):
    """A command line of the program, without ``--recipe`` and ``--out``.

    Parameters
    ----------
    words : str
        The verb and its arguments; or ``python`` and a script of this folder, which is run where its arrays are to be.
        Runs are called in one folder, where each leaves a folder of its own name. It has ``not-square.npz``, a scan of
        three coils on a grid of 24 x 40, and ``readouts.mrd`` and ``readouts-coils.mrd``, 32 lines each as a
        scanner would send them, of one coil and of three.
    recipe : str
        TOML text.
    after : str
        The run whose files the words name.
    """

    words: str
    recipe: str = ""
    after: str = ""


def _recipe(*tables: str) -> str:
    """32 x 32, and further tables."""
    return "\n".join(("input.matrix = 32", *tables)) + "\n"


SMALL = _recipe()
COILS = _recipe('[simulation]\ncoils = 3\n[coils]\nmaps = "auto:10"')
KNOWN_NOISE = "input.noise = 0.01\n"
LANCZOS = _recipe(
    '[inference]\nvariances = "lanczos:20"\ntolerance = 0.5\nsolver = "irls"\n[design]\nstrategy = "information-gain"'
)
PHASE = _recipe('[phase]\nmodel = "aware"')
LOCAL = _recipe(
    '[reconstruction]\nband_factors = false\n[phase]\nmodel = "modulus"\n'
    '[inference]\nsamples = 4\ntolerance = 0.2\nvariances = "control-variate:0.1"\nsolver = "admm:1e-3"\n'
    '[[prior]]\nkind = "pixels"\nrate = 100.0\ntau_limit = 0.4\n'
    '[[prior]]\nkind = "differences"\nrate = 10.0',
)
"""A posterior mean in a tenth of a second, for runs that reconstruct dozens of masks."""
TOTAL_VARIATION = _recipe(
    '[reconstruction]\nmethod = "map"\n'
    '[[prior]]\nkind = "differences"\nrate = 10.0\nisotropic = true\n'
    '[[prior]]\nkind = "wavelet:db4:2"\nrate = 10.0\n'
    '[[prior]]\nkind = "pixels"\nrate = 1.0',
)

POSTERIOR = "calibrated,vd-polynomial,fastmri-equispaced,low-pass,regular,oracle-residual"
DRAWS = ",".join(f"vd-polynomial draw={draw}" for draw in ("jittered", "systematic", "golden", "half"))
DRAWN = f"random,fastmri-random,vd-gaussian,{DRAWS},golden-ratio,oracle-greedy"

RUNS = {
    "design-calibrated": GoldenRun("design phantom:brain --lines 14", SMALL),
    "design-information-gain": GoldenRun(
        "design phantom:t1w --lines 13 --start 6 --strategy information-gain --seed 3", SMALL
    ),
    "design-lanczos": GoldenRun(
        "design phantom:brain --lines 12 --start 8",
        LANCZOS,
    ),
    "design-expected-error-coils": GoldenRun("design phantom:brain --lines 15 --strategy expected-error", COILS),
    "design-calibrated-coils": GoldenRun("design phantom:t2w --lines 14 --seed 1", COILS),
    "design-not-square-coils": GoldenRun("design not-square.npz --lines 13", COILS),
    "design-aware-phase": GoldenRun("design phantom:brain --lines 13", PHASE),
    "design-echo-trains": GoldenRun("design phantom:t2w --lines 16 --block 4 --order interleaved", SMALL),
    "design-constrained": GoldenRun(
        "design phantom:shepp-logan --lines 14 -s constraints.forbid=29-31,20 -s constraints.require=9,26 "
        "--partial-fourier 0.8 -s constraints.max_jump=7",
        SMALL,
    ),
    "design-until-error": GoldenRun("design phantom:brain --until-error 0.2", SMALL),
    "design-until-gain": GoldenRun(
        "design phantom:t1w --lines 20 -s design.until_gain=70 --start 6 --block 2 --strategy information-gain", SMALL
    ),
    "compare-posterior": GoldenRun(
        f"compare phantom:brain --lines 12 --train phantom:shepp-logan --strategies {POSTERIOR} --seeds 2 "
        "--method mean --jobs 1",
        LOCAL,
    ),
    "compare-methods": GoldenRun(
        "compare phantom:t1w --lines 14 --train phantom:brain --strategies regular,low-pass --method zero-filled "
        "--methods least-squares,l1-wavelet --jobs 1",
        COILS,
    ),
    "compare-drawn": GoldenRun(
        f"compare phantom:t1w --lines 11,14 --train phantom:brain --strategies '{DRAWN}' --seeds 2 "
        "--method zero-filled --seed 2 --jobs 1",
        SMALL,
    ),
    "protocol": GoldenRun(
        "protocol phantom:brain phantom:t2w --lines 14 --start 6 --swaps 2 --seed 1 --test phantom:t1w --seeds 2 "
        "--against 'low-pass,vd-polynomial draw=jittered' --method mean --jobs 1",
        LOCAL,
    ),
    "train": GoldenRun(
        "protocol phantom:brain phantom:t2w --rule residual-greedy --lines 12 --method zero-filled --jobs 1", SMALL
    ),
    "train-tried": GoldenRun(
        "protocol phantom:brain phantom:t2w --rule stochastic-lbcs:6:1 --lines 10 --seed 4 "
        "--method zero-filled --jobs 1",
        SMALL,
    ),
    "design-trained": GoldenRun("design phantom:t1w --lines 11 --strategy trained:train/order.npz", SMALL, "train"),
    "design-seen": GoldenRun("design phantom:brain --lines 12 --with phantom:brain", SMALL),
    "design-plane": GoldenRun("design phantom:t2w --encoding plane --acceleration 8", SMALL),
    "design-plane-coils": GoldenRun("design phantom:t2w --encoding plane --acceleration 6 --start 10", COILS),
    "design-plane-gain": GoldenRun(
        "design phantom:brain --encoding plane --acceleration 8 -s constraints.forbid=corners --block 24 "
        "--strategy information-gain",
        SMALL,
    ),
    "design-plane-expected-error-coils": GoldenRun(
        "design phantom:brain --encoding plane --acceleration 6 --strategy expected-error", COILS
    ),
    "design-plane-disc": GoldenRun(
        "design phantom:brain --encoding plane --acceleration 6 --strategy poisson-disc", SMALL
    ),
    "design-plane-seen": GoldenRun(
        "design phantom:brain --encoding plane --acceleration 10 --with phantom:brain", SMALL
    ),
    "design-positions": GoldenRun(
        "design phantom:head-3d --slices 2,4,6 --encoding plane --acceleration 8 --jobs 1", SMALL
    ),
    "design-spokes": GoldenRun("design phantom:brain --encoding radial --shots 8", SMALL),
    "design-spokes-coils": GoldenRun("design phantom:brain --encoding radial --shots 7", COILS),
    "design-arms-fixed": GoldenRun("design phantom:brain --encoding spiral --shots 6 --strategy half-turn", SMALL),
    "compare-planes": GoldenRun(
        "compare phantom:brain --encoding plane --acceleration 8 --train phantom:t1w --seeds 1 --method zero-filled "
        "--strategies calibrated,poisson-disc,vd-polynomial,oracle-residual,oracle-hole --jobs 1",
        SMALL,
    ),
    "compare-oracles": GoldenRun(
        "compare phantom:brain --lines 12 --strategies oracle-hole,oracle-residual,information-gain --seeds 1 "
        "--method zero-filled --jobs 1",
        SMALL,
    ),
    "compare-arms": GoldenRun(
        "compare phantom:brain --encoding spiral --shots 6,8 --strategies one-missing,full-turn --method zero-filled "
        "--jobs 1",
        SMALL,
    ),
    "protocol-coils": GoldenRun("protocol phantom:brain phantom:t2w --lines 14 --strategy calibrated --jobs 1", COILS),
    "adapt": GoldenRun("adapt readouts.mrd --lines 12 --start 6", KNOWN_NOISE + SMALL),
    "adapt-coils": GoldenRun("adapt readouts-coils.mrd --lines 14 --start 10 --block 2", KNOWN_NOISE + COILS),
    "protocol-planes": GoldenRun(
        "protocol phantom:brain phantom:t2w --encoding plane --samples 180 --block 40 --test phantom:t1w --seeds 1 "
        "--method zero-filled --jobs 1",
        COILS,
    ),
    "train-planes": GoldenRun(
        "protocol phantom:brain phantom:t2w --rule residual-greedy --encoding plane --samples 150 --block 40 "
        "--method zero-filled --jobs 1",
        COILS,
    ),
    "design-trained-planes": GoldenRun(
        "design phantom:t1w --encoding plane --samples 170 --block 60 --strategy trained:train-planes/order.npz",
        COILS,
        "train-planes",
    ),
    "recon-plane": GoldenRun("recon phantom:t2w --mask design-plane/mask.npy", SMALL, "design-plane"),
    "recon-spokes": GoldenRun("recon design-spokes/trajectory.npz", SMALL, "design-spokes"),
    "recon-mean": GoldenRun("recon phantom:brain --mask design-calibrated/mask.npy", SMALL, "design-calibrated"),
    "recon-map": GoldenRun(
        "recon phantom:brain --mask design-calibrated/mask.npy", TOTAL_VARIATION, "design-calibrated"
    ),
    "recon-coils": GoldenRun(
        "recon phantom:t2w --mask design-calibrated-coils/mask.npy --seed 1", COILS, "design-calibrated-coils"
    ),
    "recon-not-square-coils": GoldenRun(
        "recon not-square.npz --mask design-not-square-coils/mask.npy", COILS, "design-not-square-coils"
    ),
    "recon-plane-coils": GoldenRun("recon phantom:t2w --mask design-plane-coils/mask.npy", COILS, "design-plane-coils"),
    "compare-planes-coils": GoldenRun(
        "compare phantom:t2w --encoding plane --acceleration 6 --seeds 1 --method zero-filled "
        "--strategies calibrated,poisson-disc --jobs 1",
        COILS,
    ),
    "recon-volume": GoldenRun(
        "recon phantom:head-3d --slices 3-5 --mask design-positions/mask.npy --jobs 1", SMALL, "design-positions"
    ),
    "design-volume": GoldenRun("design phantom:head-3d --slices 3-5 --lines 6 --jobs 1", SMALL),
    "design-with": GoldenRun("design phantom:t2w --lines 12 --with phantom:t1w-6a", SMALL),
    "recon-with": GoldenRun(
        "recon phantom:t2w --mask design-with/mask.npy --with phantom:t1w-6a", SMALL, "design-with"
    ),
    "python": GoldenRun("python front.py"),
}
