"""Pictures of a run: one page of HTML that opens from disk, and the maps of single answers."""
