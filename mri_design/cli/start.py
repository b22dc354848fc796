"""Where the process begins, on one thread.

An interruption while the program is still being loaded ends it as later ones do.
"""

from __future__ import annotations

import os
import sys

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that libraries of linear algebra read when they are loaded."""


def main() -> None:
    """The process behind ``mri-design``.

    Its matrices are small: more threads than one would wait for each other, and change the last bits from run to run.
    Who sets one of `THREADS` decides; several cores are for ``--jobs``.
    """
    if not any(name in os.environ for name in THREADS):
        os.environ["OMP_NUM_THREADS"] = "1"
    try:
        from mri_design.cli.main import main as begin

        begin()
    except KeyboardInterrupt:
        sys.stderr.write("mri-design: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
