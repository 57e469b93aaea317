"""The accuracy pages: rows of predictions against measurements, kept in the repository, and the pages made from them.

    python -m benchmarks.accuracy keep SET OUTPUT     # rows of `drywarp validate --out` or of benchmarks/hecbench.py
    python -m benchmarks.accuracy pages               # docs/accuracy/, from all kept rows
    python -m benchmarks.accuracy count SOURCES       # stored counts of other people's kernels, for the frozen sample
    python -m benchmarks.accuracy moved               # predict the frozen sample again: what has moved by over 0.5 %?

`sets.toml` says of each set what was measured, where the figures are from, by which command its rows were predicted,
what of it was used in building drywarp, and which outliers are explained.
"""
