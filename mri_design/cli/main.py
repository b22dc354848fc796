"""The command line: one verb per task."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mri_design.cli.adapt import adapt
from mri_design.cli.design import design
from mri_design.cli.files import convert, export, info, measure
from mri_design.cli.flags import HelpfulCommand, HelpfulGroup
from mri_design.cli.mask import mask
from mri_design.cli.recon import recon
from mri_design.cli.study import compare, demo, protocol, train
from mri_design.cli.terminal import output_may_end_early

EXAMPLES = {
    demo: "--out demo-run",
    info: "scan.h5; mri-design info run",
    design: "scan.h5 --lines 64 --out run. Trains of eight lines, as many as are needed: mri-design design scan.h5 "
    "--until-error 0.05 --partial-fourier 0.75 --block 8 --order interleaved --out run",
    adapt: "--listen 9002 --lines 64 --out run; then connect an MRD client to port 9002",
    recon: "scan.h5 --mask run/mask.npy --out recon",
    measure: "recon --region lesion.nii.gz --against muscle.nii.gz; the run was made with mri-design recon scan.h5 "
    "--draws 32 --out recon",
    compare: "phantom:t2w --lines 32,48,64 --strategies calibrated,vd-polynomial,random --out study",
    protocol: "heads.h5#all --test other.h5#all --lines 64 --swaps 8 --out protocol",
    train: "heads.h5#all --rule residual-greedy --lines 64 --out order.npz; then mri-design design scan.h5 "
    "--strategy trained:order.npz --lines 48 --out run",
    export: "run --to seq --fov 0.24 --scanner siemens-skyra --out lines.seq; mri-design export run --to nifti --out "
    "image.nii.gz",
    mask: "--kind poisson-disc --shape 256x180 --acceleration 8 --calibration 24 --seed 3 --out mask.npy",
    convert: "scan.h5 scan.cfl; mri-design convert head.npy head.nii.gz --fov 0.24",
}
"""Every verb, in the order of the help, and words to call it with."""

PLURAL = {"token_normalize_func": lambda name: "acceleration" if name == "accelerations" else name}
"""Some verbs take one acceleration, others several: both names are taken everywhere."""

app = typer.Typer(
    name="mri-design",
    cls=HelpfulGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for verb, words in EXAMPLES.items():
    name = verb.__name__
    context = {
        "token_normalize_func": lambda text: "acceleration" if text == "accelerations" else text
    }  # some take several
    app.command(name, cls=HelpfulCommand, epilog=f"Example: mri-design {name} {words}", context_settings=context)(verb)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"mri-design {version('mri-design')}\n")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Decide which k-space lines to measure next, and reconstruct with error bars.

    Exit codes: 0 done, 2 wrong usage, 3 bad input, 4 finished but not converged or the wanted error out of reach,
    130 interrupted, 1 anything else.
    """


def main() -> None:
    """The process behind ``mri-design``."""
    output_may_end_early()
    app()


if __name__ == "__main__":
    main()
