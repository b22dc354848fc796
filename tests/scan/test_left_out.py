"""Which entries of a header say that something was not read."""

from mri_design.scan.data import left_out, left_out_text

CARD = {
    "file": "raw.h5",
    "coils_dropped": "coil 1 holds zeros only",
    "repetition": "0, the first of 2 (0, 1); the others were not read",
    "contrast": "T2-weighted",
    "oversampling_removed": "readouts of 32 samples were cut",
}


def test_what_readers_left_out_is_told_and_nothing_else() -> None:
    assert list(left_out(CARD)) == ["coils_dropped", "repetition"]
    assert left_out({"file": "raw.h5", "contrast": "T2-weighted"}) == {}


def test_a_chosen_series_is_no_news() -> None:
    assert left_out_text(CARD, asked={"repetition": 0}) == "coils dropped: coil 1 holds zeros only"
    assert left_out_text(CARD).endswith("repetition: 0, the first of 2 (0, 1); the others were not read")
    assert left_out_text({"file": "raw.h5"}) == ""
