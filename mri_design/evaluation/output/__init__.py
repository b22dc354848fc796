"""What a run leaves: its folder, manifest, tables and the page that shows them."""
