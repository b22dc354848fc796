"""Where the process begins: an interruption while the program is still being loaded ends it as later ones do."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The process behind ``mri-design``."""
    try:
        from mri_design.cli.main import main as begin

        begin()
    except KeyboardInterrupt:
        sys.stderr.write("mri-design: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
