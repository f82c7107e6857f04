"""The engine: one driver over additive statistics. Knows no model and no file format."""
