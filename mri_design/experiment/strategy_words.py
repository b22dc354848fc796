"""What every strategy chooses, in words: where its name stands in a report, so does this."""

from __future__ import annotations

from mri_design.experiment.strategy_names import FROM_FILES, reads_file

EXPLAINED = {
    "calibrated": (
        "chosen while the scan is measured, where the image so far is expected to be most wrong; every "
        "measurement corrects the expectation"
    ),
    "information-gain": (
        "chosen while the scan is measured, to tell most about the image under the posterior (the published rule)"
    ),
    "information-gain-lanczos": "chosen as by information-gain, with variances from Lanczos vectors",
    "expected-error": "chosen while the scan is measured, where the posterior expects its mean to be most wrong",
    "random": "drawn at random, all equally likely, beside a few at the centre",
    "fastmri-random": "drawn at random around a full centre of 8 %, as in fastMRI",
    "fastmri-equispaced": "at equal distances around a full centre of 8 %, with a random offset, as in fastMRI",
    "vd-polynomial": "drawn at random, from a density that falls with a power of the distance from the centre",
    "vd-gaussian": "drawn at random, from a Gaussian density around the centre",
    "vd-jittered": "drawn from a density that falls with the distance from the centre, one from every unit of mass",
    "vd-systematic": "drawn from a density that falls with the distance from the centre, evenly",
    "vd-golden": "drawn from a density that falls with the distance from the centre, in steps of the golden ratio",
    "vd-half": "drawn from a density that falls with the distance from the centre, on one half of k-space",
    "poisson-disc": "drawn at random with a least distance from each other, around a full centre",
    "caipi": "in a regular pattern that is shifted from row to row (2-D CAIPIRINHA), and a full centre",
    "regular": "at equal distances, those left over at the centre (parallel imaging)",
    "low-pass": "nearest to the centre",
    "golden-ratio": "in steps of the golden ratio of the grid",
    "half-turn": "spread evenly over half a turn",
    "full-turn": "spread evenly over a turn",
    "one-missing": "spread evenly over a turn as if there were one more",
    "golden": "a golden angle apart",
    "tiny-golden": "a tiny golden angle apart",
    "oracle-residual": "chosen where the image is most wrong, which it sees in the true image: a mark, not a design",
    "oracle-hole": "chosen by the expected error, which the true image corrects around each: a mark, not a design",
    "oracle-greedy": (
        "chosen as those after which the image is best, which it sees in the true image: a mark, not a design"
    ),
    "residual-greedy": "chosen where reconstructions of the training scans are most wrong, the same for every scan",
}
"""Name of a strategy to a few words that go on from "lines", "samples" or "spokes"; a script may add its own."""

_TRAINED = "in the order that mri-design train learnt on other scans"
_INFORMED = "; what mri-design train saw on other scans has a say"


def explained(name: str) -> str:
    """What a strategy chooses, in a few words that go on from "lines", "samples" or "shots"; empty where nobody said.

    Parameters
    ----------
    name : str
        As `make_strategy` takes it.
    """
    family, _, setting = name.partition(":")
    if family in FROM_FILES:
        return _TRAINED
    about = EXPLAINED.get(family, "")
    if reads_file(name):
        return about + _INFORMED
    return f"{about} (set to {setting})" if setting and about else about
