"""Which subject is for what, written down before the first run; and which images of them are used."""

from __future__ import annotations

TRAINING_HEADS = (0, 2, 4)
TEST_HEADS = (6, 7, 9, 10, 12, 13, 15, 16, 18, 19, 21, 22)  # four of each subject
OTHER_TEST_HEADS = (8, 11, 14, 17, 20, 23)
LARGE_TEST_HEADS = (7, 13)  # at 256 x 256
COIL_TEST_HEADS = {4: (7, 12, 18), 8: (9, 13, 21), 16: (6, 15, 22)}  # one of each subject
TRAINED_ON = "0-5"
TEST_SUBJECTS = ("6B", "7A", "7B")
TRAINING_SUBJECT = "6A"
MIDDLE = 2  # of four slices

SPLIT = f"""# Training and test images

Written down before the first run. Subjects are those of the data's README; no subject is in both columns. Densities,
the weight of MAP and trained orders see the training column only, and so does the choice of strategies and models. Seen
before, all the same: the first study reported on heads 6, 10, 12, 16, 18 and 22, the calibration table of the inference
benchmark on 6, 12 and 18, variance estimators were compared on 7; the embedded phantom `t1w` is a slice of 7A.

| source | training | test |
|---|---|---|
| `img_3T_complex` (24 complex 3 T heads, six per subject) | images 0-5: densities and MAP on \
{", ".join(map(str, TRAINING_HEADS))}, orders on {TRAINED_ON} | {", ".join(map(str, TEST_HEADS))}; thesis figure \
{", ".join(map(str, OTHER_TEST_HEADS))}; full size {", ".join(map(str, LARGE_TEST_HEADS))}; coils \
{", ".join(f"{n}: {' '.join(map(str, heads))}" for n, heads in COIL_TEST_HEADS.items())} |
| `lf_*_gre`, `lf_*_fse` (raw 0.055 T, middle slice, denoised, noise anew) | 6A | 6B, 7A, 7B |
| `mc_brain_cimax16` (raw, 16 coils, 3 T) | - | combined, and with its coils |
| `lf_S3B_flair_cage`, `lf_S3B_flair_nocage` (two repeats) | - | middle slice of the first, judged by the second |
| `lf_S3A_flair_nocage` (interference) | - | stress only, judged by `lf_S3B_flair_nocage`, the same scan without it |
| `mag3T_*` (magnitude, synthetic phase) | 6A | 6B, 7A, 7B |
| phantoms `t2w` (6A), `brain`, `shepp-logan`; `mc_phantom_*` | `t2w` | stress only: the others |

Competitor: `vd-tuned`, of all variable-density families, powers and centres the one with the least mean error on the
training images, chosen for every number of lines and reconstructor. Metric: relative L2 error of the magnitude, judged
on means over line counts 1/8, 3/16, 1/4, 3/8, 1/2 of the grid; PSNR and SSIM beside it. Random masks are drawn five
times (thesis figure: ten). Test: two-sided sign test over images.
"""
