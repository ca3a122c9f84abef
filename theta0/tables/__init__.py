"""Tabular benchmarks: trained once by their authors, looked up here.

table = theta0.tables.load("nasbench201")           # what is installed or converted
table = theta0.tables.load("nb201.parquet")         # or any known file
theta0.tables.save(table, "nasbench201.npz")        # loads in a moment, needs nothing but numpy
"""

from __future__ import annotations

from theta0.tables.file import checksum, save
from theta0.tables.loading import convert, load, names
from theta0.tables.sources import get
from theta0.tables.table import Table, Trained

__all__ = ["Table", "Trained", "checksum", "convert", "get", "load", "names", "save"]
