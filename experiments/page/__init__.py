"""docs/results.md: its tables, figures and judgements, from the records under results/."""
