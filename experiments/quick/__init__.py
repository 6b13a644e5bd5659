"""The quick recipes: the paper's network in bounded minutes, with initializations and learning rates of its own."""
