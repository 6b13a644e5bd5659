"""What a trained model is worth: metrics, how sure they are, and the simple model that stands beside it."""
