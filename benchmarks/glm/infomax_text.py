"""What the part infomax shows, in words around its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text_of(setting: Any, tables: Mapping[str, str], exponents: Mapping[str, float]) -> str:
    """The README after its title and command."""
    slopes = "".join(f"- {name.replace(' ms', '')}: {value:.2f}\n" for name, value in exponents.items())
    return f"""
A neuron answers a query x with a Poisson count of rate exp(x' theta); theta is one period of a sine of unit length in
n = {setting.n} unknowns, the prior N(0, I), |x| at most the power. Queries by `InfomaxQuery` (expected mutual
information, no fixed components) against independent ones, uniform on the sphere; both through `LaplaceFilter`.
{setting.seeds} seeds each.

![Squared error and variances](error-and-variance.png)

## Trials needed (Figure 1a of the paper)
The mean squared error that independent queries have after a number of trials, and where the mean curve of infomax falls
to it for good. Levels that infomax does not reach within its {setting.trials[0]} trials are left out.

{tables["needed"]}

The paper says "an order of magnitude", for a filter and a power that its text does not give. How much it is depends on
the power, since the rate grows exponentially with it, and on the accuracy asked for: the ratios above, no more.

## The asymptote (Figure 2)
Trials times posterior variance at the end, along theta and (geometric mean) across it, beside 1 / information per trial
of `asymptotic_information`. One longer run of infomax. Along theta it takes long: trials before theta is known
do not point along it.

{tables["asymptote"]}

## Time per trial (Figure 1b)
CPU time on one thread, medians over {setting.repeats} trials after {setting.warm}. A query searches 48 Krylov
directions of the covariance from n > 96 on, in O(n^2), and all of them by an eigendecomposition, in O(n^3), below and
in the last column but one; the last column is what the Krylov query loses of the other's score. The paper reports 0.1 s
at n = 200.

{tables["times"]}

![Time](time.png)

Fitted exponents:

{slopes}
## An MR slice
Phantom t2w, {setting.grid} x {setting.grid}, one coil, posterior by the double loop with exact variances after a
variable-density design of so many lines. Gains are twice the information in nats. The best free rows of a line's number
and energy bound what any readouts of that energy could tell under this posterior; the gap to the best line is the price
of straight lines.

{tables["encoding"]}

## Where we lose
- The "order of magnitude" in trials is not reached at these two powers.
- A single free vector with the energy of a line tells far less than the line: it takes many numbers.
- Near n = 100 the eigendecomposition is the faster query; what the Krylov directions save shows from n = 200 on.
- One pass of the filter with early queries of large power is a rough approximation: the first responses decide where
  later sites are expanded, and nothing is looked at twice.
"""
