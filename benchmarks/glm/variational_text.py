"""What the part variational shows, in words around its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mri_design.evaluation.tables import Row


def text_of(setting: Any, tables: Mapping[str, str], means: Sequence[Row]) -> str:
    """The README after its title and command."""
    here = "in the table below, at three learning rates" if tables["peer"] else "not installed here"
    return f"""
## USPS digits, three against five
Gaussian process classification with a squared exponential kernel, as a linear model: weights N(0, I) through the
Cholesky factor of the kernel. N digits by a seeded permutation. CPU time of one thread; engines get {setting.limit:g} s
each (a step that has begun is finished), and `Opper-Archambeau` and `decoupled` are not run beyond N = {setting.small}.
The double loop minimises another, looser bound and is there for comparison.

{tables["bounds"]}

![Bound against time](bound-against-time.png)

- All engines that converge end in the same optimum.
- gpytorch's natural gradient is {here}; it is no part of the project's environment (`pip install gpytorch`). Figures of
  another day, at a rate that is not known: 2.7 s at N = 200, 38 s at N = 500. What it reports is no bound: its 20-point
  Gauss-Hermite rule is wrong where standard deviations are large, and its values lie below the optimum.
- Figure 1 of the paper cannot be reproduced from its text. With its stated log ell = -1 on pixels in (-1, 1) the kernel
  is diagonal to twelve digits, so that every digit is on its own and the negative bound is 0.992 N at log sigma = 4;
  the axes of the figure read about 2.7 N. "Decoupled is fastest" is not seen here either: its outer loop converges
  linearly, and the conjugates of the logistic site have no closed form.

{tables["peer"]}

## Error bars on an MR image
Head image 0 with its real phase (training data of the other studies), simulated with one coil and known noise, one line
in 2, 4 or 6 of variable density; the default recipe's sites, and exact variances by columns for both engines. z is
|E u - truth| over the predicted standard deviation of a pixel, and z^2 would have mean 1 and be exponential. "head" are
the pixels above a tenth of the image's 99.5th percentile. Means over seeds of noise and mask: three at 64 x 64, one at
128 x 128.

{tables["error bars"]}

![Coverage](coverage.png)

{verdict(means)}

## Where we lose
- Where every digit is on its own (log ell = -1) generic minimisers are faster than the natural gradient, whose steps
  shorten on sites with nearly flat priors; at N = 200 and log sigma = 4 Cholesky is as fast.
- The variational Gaussian's mean is not the better image: its error is the double loop's or 2 % above.
- A tighter bound costs: a variational Gaussian takes more updates than a double loop takes outer loops, and its
  expectations more than a derivative.
- Neither is calibrated: the sites are not the truth about heads, and no choice between Gaussians mends that.
- The decoupled algorithm, as we wrote it, is among the slowest; the Opper-Archambeau parameterisation does not converge
  in its time on the ill-conditioned kernels.
"""


def verdict(means: Sequence[Row]) -> str:
    """Which engine's z^2 is nearer to one in the head, counted."""
    pairs = {}
    for row in means:
        pairs.setdefault((row["grid"], row["lines"]), {})[str(row["engine"])] = float(str(row["mean z^2, head"]))
    better = sum(abs(one["variational Gaussian"] - 1) < abs(one["double loop"] - 1) for one in pairs.values())
    return (
        f"Mean z^2 in the head is nearer to 1 with the variational Gaussian in {better} of {len(pairs)} settings. Where"
        " it is above 1 the posterior promises too much. The variational Gaussian promises less everywhere, and is too"
        " cautious where the double loop is nearly right."
    )
