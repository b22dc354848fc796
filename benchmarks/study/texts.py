"""What the README says before its tables."""

from __future__ import annotations

from study.groups import BESIDE, TUNED
from study.scans import LOW_FIELD_NOISE, NOISE
from study.sections import DEFAULT
from study.tuning import WEIGHTS

INTRODUCTION = f"""# Design study

Which lines to measure: the package's strategies against variable density tuned on other subjects, with the same
reconstruction for every mask. Training and test subjects were written down before the first run: [SPLIT.md](SPLIT.md).
Rows of the targets that name a page are what other benchmarks measured, read from their pages in `results/benchmarks`.
The tables below are made from the kept rows: every reconstruction ([cells.csv](cells.csv)), every mask
([masks.csv](masks.csv)), every density tried ([tuned.csv](tuned.csv)), every prediction
([predictions.csv](predictions.csv)) and the cost of training ([training.csv](training.csv)). The tables by line counts
are in [summary.csv](summary.csv) too.

**How to read the tables.** At every share of lines: relative L2 error of the magnitude, mean over images and draws, and
its change against `{TUNED}` on the same images and with the same reconstruction, mean over images (negative is better).
Then over all line counts: `change` as before; `gap closed` is the share of the way from `{TUNED}` to `oracle-residual`,
a mask that looks at the truth and the posterior mean; `images won`, `p` (two-sided sign test; slices of one head are
not independent) and `worst change` are over images, each with its mean over line counts; `worst L2` is the worst cell;
`sd of draws` is the spread of random masks on one image. Rows with fewer `images` were measured on some only, with the
posterior mean only, to save time: their changes are on these. Of every family tuning tries: polynomial five powers, the
best of them with three centres; Gaussian three, the best with two centres; the evenly drawn ones (jittered, systematic,
golden) the polynomial's best power and centre; those on a part of k-space ({", ".join(BESIDE)}), which are no part of
`{TUNED}`, that power and half of it (three shares of k-space for partial Fourier). The thesis figure and coils try four
powers of the polynomial and one Gaussian. A finer grid might find a little more: the best value is at times the last
that was tried. `best of the random draws` looks at the truth too. Bold is the default strategy. Posterior strategies
design each test scan on its own lines as they come, without training.

**What these tables rest on.** All masks of `calibrated` are as the program designs now: a line's score counts its
neighbours, and designs with several coils begin with four centre lines. Posterior strategies have three seeds (one mask
in the thesis figure), random densities five draws. Trained orders, and masks along which others predict, are of an
earlier training.

Designs of the first release are sensitive to chance: another seed has been seen to move the error of a single image by
5 to 10 %. So their means over many images can be relied on, but the worst image, the number of images won and the
share of the gap closed can fall either way. On twenty scans that took no part in development, the first release's
`calibrated` was 6.7 % better than the tuned density on the same mixture of anatomies (9.0 % here), closed 36 % of the
gap to the oracle (57 % here), and lost on three of the twenty images, by up to 3.1 %; with several coils it was 3 %
better than the tuned density at 4x and 4 % worse at 6x, each the mean of a large win and a large loss; with eight coils
it lost to the tuned density by 15 to 19 %, and to regular sampling at 4x. The scans outside the study were measured
once: neither they nor their tables are part of the repository, and only these numbers are left. With several coils, all
accelerations count the lines of the undersampled scan alone: the coil maps are taken as known from a separate
calibration scan, whose lines are not counted. At 6x that scan is no small part of the measurement.

**Reconstructions.** *Posterior mean, local prior*: the recipe `local`, with pixels and differences for sites; all masks
are designed with it. *Posterior mean of the default recipe under moduli*: non-local differences besides, without what
lines held back decide; it reconstructs some of the masks of the section real-phase, where densities were tuned under it
with an earlier setting of its rates. *Posterior mean of the default recipe*: as it is, with the model of the phase and
the correction of k-space bands that lines held back ask for; it reconstructs the masks of the default strategy in the
sections real-phase and synthetic-phase. *TV + wavelet MAP*: the recipe `tv-wavelet`, its rates times one weight out of
{", ".join(f"{w:g}" for w in WEIGHTS)}, tuned once on the training heads.

**Scans that were not measured**: `lf_4A`, `lf_4B` (which axis is phase encoding is not documented), the other low-field
contrasts and slices of subjects that are here, `mc_brain_cimax2` (the brain that is here, by two coils), and the
`mc_phantom_*` but one. So real scans with several coils in vivo are one, and the group low field is three test
subjects.
"""

TRIED = """**What was tried for the targets that are missed.** Trials saw training images only (heads 0-5, low field 6A,
magnitude images of 6A) and are not kept as rows; what is said of the tables below is. What brought most: to learn which
side of k-space is brighter (all heads are lopsided by half a nat; -5 % on heads), pixel sites whose sharpness follows
the noise (-16 to -34 % for every mask at low field), preferring lines whose predicted energy is
uncertain. What brought nothing that can be told from chance: other priors (Student-t, exponential power, isotropic
sites, wavelets) within 2 %; more places in |k|; a look one line ahead at what a line teaches about others (it settles
on a side before it knows which one is better); posterior variances beside the features of place (rank correlation .72
with and without them). A phase-aware posterior designed better masks for training heads before the sides of k-space
were told apart (-12 % against a tuned density where sites on moduli had -8 %); since then the two are level (section
models). The residual oracle says what is left: it knows each line's own energy, which no smooth model of k-space can.

The largest error is not all: a regression fitted with weights by energy, with gaps near the centre among its features,
chose lines whose true error was 0.38 nats below the largest on average instead of 0.42, and the images became 2 %
worse, because lines between measured ones get better while they wait. A penalty of 0.3 nats for every measured
neighbour made heads 1 % better, low field no different, magnitude images 2 to 5 % worse. Other starts (4 or 6 centre
lines), covariances between scans of 0.3 to 10 times, and 1.5 to 3 times the spread are within 2.5 % of what ships on
heads and low field, where another seed alone moves the mean by 0.7 %.

- *The pair against MAP*: most of it would have to come from the masks, since with the density tuned for either the
  posterior mean is 8 % better than MAP on heads, 2 % on low field, and 17 % worse on the 16-coil brain (tables below).
- *Synthetic phase*: the default recipe's mean, which knows the phase where lines held back ask for it; designs under it
  are in the section phase-models.
- *Coils*: without the neighbours in the score, designs took every second line, which several coils know already. An
  error model learnt from 24 heads with 4, 8 and 16 coils instead of 12 with four made two training heads with 8 coils
  6 % worse on average, one with 16 coils 2 %, and was not taken (before neighbours counted). A neighbourhood twice as
  wide made a training head with 8 coils up to 40 % worse at 3/8 of the lines.
- *Under today's rule*: error models learnt anew along masks of that rule, from heads and other objects, with up to 16
  coils; neighbourhoods that follow coils and support; sides in turn. None was taken (results/benchmarks/mask-rules.md,
  eleven rules on training scans, three seeds): one that was learnt anew for several coils is -2.6 +- 1.2 %, nearly all
  of it on hearts of one subject and on low field.
- *LBCS at 48 x 48*: with 6 of 48 lines `calibrated` is the centre by construction, since it starts from 8 lines; LBCS
  starts from 4. Starts of 6, 4 and 3 lines were 5, 6 and 1 % worse on average over all line counts.
- *Ratios of single lines* (table below): within a factor of two in 95 % of cases along tuned densities, 75 % along a
  trained order, 55 % along the centre alone, which no design is near. Nothing else was tried.
- *Residual-greedy against LBCS*: nothing was tried.
- *Spread over seeds under the default mean*: nothing was tried that is about this mean alone.
- *Predicted error, own masks*: four images with one design each. At the end all four predictions are too small. Nothing
  was tried for it.
- *Error bars*: nearly half of the cases outside are repeats, which another noisy scan judges, and the raw brain.
- *An earlier scan at a quarter of the lines*: the residual oracle, which knows the truth, does not reach this aim
  either (series.md).
- *Seconds*: where the scan takes the phase-aware model, every inference takes longer, and error bars come from draws of
  the posterior, which are a third of the time. Loops over the graph take eight samples at once since (14.9 and 11.0
  times became 11.6 and 9.7, recon-time.md); draws that are solved more roughly change error bars by 4 to 5 %.
"""

TEXTS = {
    "real-phase": f"""128 x 128, phase as the scanner left it. *3T heads*: coil-combined, noise sd {NOISE:g} of the
99.5th percentile added. *low field*: raw 0.055 T slices, denoised by non-local means, noise sd {LOW_FIELD_NOISE:g}
added. *16-coil brain*: combined, noise added. *repeats*: raw (117 lines), judged by the other repeat, whose noise is
in all errors alike and hides differences. The 16-coil brain uses the densities tuned for the heads, the repeats those
for low field, at the same share of lines. No picture of `img_3T_complex` is kept: its licence is not stated.""",
    "synthetic-phase": """Magnitude 3 T slices at 128 x 128 with a polynomial phase (`smooth`) and with local exceptions
to it (`rough`). Such images flatter whatever models phase.""",
    "phase-models": f"""The same test images where sites know the phase (`phase.model = "aware"`): masks that
`{DEFAULT}` designs under
each model, reconstructed by the phase-aware posterior mean, and densities tuned anew for that on the training
images. The default recipe designs under moduli: where every scan chose between both models ("chosen by the
scan" in the tables; designs no longer do), masks of training images of real phase were 3 % worse for two low-
field slices (a gradient echo's phase is not smooth) and 2 % better for a head (no rows kept), and took three
times as long. Where phase is known a density on one half of k-space is as good as a design.""",
    "full-size": """256 x 256, two heads with their own phase, two magnitude slices with a rough one. Densities are
those tuned at 128 x 128 on the heads, their centre doubled.""",
    "thesis-figure": """Figure 6.11 of Nickisch's thesis: 256 x 256, 32 centre lines and 32 chosen ones. One mask per
strategy, designed on three training slices together, used on other slices, contrasts and subjects; the density is tuned
on the same three, with the same centre. Exchanges drop a line and add another where that lowers the MAP error of the
three. `residual-greedy` is what `protocol` goes by: the errors of the posterior means of the three or, where it says
so, of their MAP images. There (another scan, in that figure's own measure): low-pass 6.62, optimised 4.38, variable
density 5.60, equispaced 7.77.""",
    "multi-coil": """128 x 128: three heads, one of each test subject, seen by 4, by 8 and by 16 simulated coils each,
and the raw 16-coil brain, judged by its own complete image. Coil maps count as known from a calibration scan of their
own. The densities are tuned for each number of coils, their centre too. `regular + 8 ACS` is every R-th line and a
centre of eight, R the smallest that fits. The group with 16 coils holds the raw brain, on which the first release
failed. `calibrated` has three seeds.""",
    "centre-maps": """Three of the heads seen by eight coils once more: no scan gives the coil maps, they are estimated
from sixteen lines at the centre of k-space, with which every mask begins. The densities are tuned for this centre.""",
    "stress": """Scans unlike those that anything was tuned on: piecewise constant and uniform phantoms, and a scan
full of interference, judged by the same scan without it. Densities are those tuned on the 3T heads.""",
    "models": f"""Plain information gain, and the default strategy, under each model of the image, each model's
reconstruction of every mask. Each table is one reconstruction; `{TUNED}` is tuned for the default one.""",
    "trained": """48 x 48, so that the whole of LBCS can be afforded. *In domain*: heads of other subjects; *out of
domain*: low field. Training reconstructs with the default posterior mean, cut short. The rows `heads` are the orders
used at 128 x 128 above.""",
    "prediction": f"""The strategy's belief about the remaining error, at masks that are not its own (and its own),
before each line: predicted over actual error of the image, and over lines with |k| < N/3 the median ratio of energies
and the rank correlation. Images: some of real phase. `{DEFAULT}` is the default; rows with the name of a model are
strategies under that model, along masks that are not theirs.""",
}
"""Section to its text."""
