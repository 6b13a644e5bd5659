"""Speed, memory, scaling and cost: what is measured, on which machine, and how far it is from the machine's limits."""
