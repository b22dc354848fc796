"""The command line: one verb per task."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mri_design.cli.adapt import adapt
from mri_design.cli.compare import compare
from mri_design.cli.convert import convert
from mri_design.cli.demo import demo
from mri_design.cli.design import design
from mri_design.cli.export import export
from mri_design.cli.looking.info import info
from mri_design.cli.looking.status import status
from mri_design.cli.protocol import protocol
from mri_design.cli.recon import recon
from mri_design.cli.terminal import output_may_end_early
from mri_design.cli.train import train

app = typer.Typer(
    name="mri-design",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command("demo", epilog="Example: mri-design demo --out demo-run")(demo)
app.command("info", epilog="Example: mri-design info scan.h5")(info)
app.command("status", epilog="Example: mri-design status runs")(status)
app.command(
    "design",
    epilog="Example: mri-design design scan.h5 --lines 64 --out run. Trains of eight lines, as many as are needed: "
    "mri-design design scan.h5 --until-error 0.05 --partial-fourier 0.75 --block 8 --order interleaved --out run",
)(design)
app.command(
    "adapt",
    epilog="Example: mri-design adapt --listen 9002 --lines 64 --out run; then connect an MRD client to port 9002",
)(adapt)
app.command("recon", epilog="Example: mri-design recon scan.h5 --mask run/mask.npy --out recon")(recon)
app.command(
    "compare",
    epilog="Example: mri-design compare phantom:t2w --lines 32,48,64 "
    "--strategies calibrated,vd-polynomial,random --out study",
)(compare)
app.command(
    "protocol",
    epilog="Example: mri-design protocol heads.h5#all --test other.h5#all --lines 64 --swaps 8 --out protocol",
)(protocol)
app.command(
    "train",
    epilog="Example: mri-design train heads.h5#all --rule residual-greedy --lines 64 --out order.npz; "
    "then mri-design design scan.h5 --strategy trained:order.npz --lines 48 --out run",
)(train)
app.command(
    "export",
    epilog="Example: mri-design export run --to seq --fov 0.24 --scanner siemens-skyra --out lines.seq; "
    "mri-design export run --to nifti --out image.nii.gz",
)(export)
app.command(
    "convert",
    epilog="Example: mri-design convert scan.h5 scan.cfl; mri-design convert head.npy head.nii.gz --fov 0.24",
)(convert)


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
