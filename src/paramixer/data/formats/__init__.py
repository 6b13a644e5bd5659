"""Raw files in, samples out."""
