"""Speed and cost of one chain on this machine: what ``paramixer bench`` and ``paramixer cost`` call."""
