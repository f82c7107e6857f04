"""Optimization of objectives with additive statistics, independent of models; serialization of objects."""
