"""Classifiers that are not trained by gradients, and data to compare them."""
