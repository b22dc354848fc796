"""Images and designs in the formats of other programs, as bytes."""
