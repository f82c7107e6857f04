"""Comparison of methods on one table by nested cross-validation, with a recommendation."""

from mixent.base.recipes import Shape
from mixent.comparison.candidates import Candidate, candidates
from mixent.comparison.data_problems import data_problems
from mixent.comparison.estimate import Estimate
from mixent.comparison.recommendation import Recommendation
from mixent.comparison.result import Comparison
from mixent.comparison.study import compare

__all__ = ["Candidate", "Comparison", "Estimate", "Recommendation", "Shape", "candidates", "compare", "data_problems"]
