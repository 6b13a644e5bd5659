"""Reports of runs and explanations of predictions, each as one HTML page that opens from disk."""
