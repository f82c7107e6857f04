"""Accuracy tables: methods side by side on the same folds of ../shared/data, in one result format."""
