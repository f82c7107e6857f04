"""Fusion of black-box classifiers on an unlabelled batch (in the making; nothing here is public yet)."""
