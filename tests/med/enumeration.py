"""Lists of all trees, beside which closed forms are tested."""

from itertools import product


def every_tree(n):
    """All trees of n vertices, decoded from Pruefer's words: lists of edges u < v."""
    if n < 2:
        return [[]] * n
    trees = []
    for word in product(range(n), repeat=n - 2):
        degree = [1 + word.count(v) for v in range(n)]
        edges = []
        for v in word:
            leaf = degree.index(1)
            edges.append((min(leaf, v), max(leaf, v)))
            degree[leaf] -= 1
            degree[v] -= 1
        edges.append(tuple(v for v in range(n) if degree[v] == 1))
        trees.append(edges)
    return trees
