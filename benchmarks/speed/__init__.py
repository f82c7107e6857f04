"""Mixtures side by side with scikit-learn, pomegranate and R mclust: ratios measured in one run.

    python -m benchmarks.speed [--quick] [--json FILE] [--sizes 100000x10x16 ...] [--rounds N] [--without mclust ...]
    python -m benchmarks.speed --case discriminative [--quick] [--rounds N]    training for the posterior beside EM
    python -m benchmarks.speed --case growth [--quick] [--data FOLDER]         growth beside restarts
    python -m benchmarks.speed --case maxent [--quick] [--rounds N]            beside logistic regression
    python -m benchmarks.speed --case med [--quick] [--rounds N]               discrimination beside libsvm

Everyone gets the same data and the same start; passes are interleaved, and the median of the fastest half counts,
because timings on shared machines wander.
"""
