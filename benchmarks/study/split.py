"""Which images of which subjects are for what, as results/design-study/SPLIT.md said before the first run."""

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
