"""The one door through which all data enters: typed columns, missing values, labels, weights, files.

No DataFrame library is imported until a DataFrame or a file comes.
"""

from mixent.data.checks import check_spread, few_numbers, problems
from mixent.data.export import Origin, drawn_rows, imputed_like, integers_back, new_frame, to_frame
from mixent.data.features import Categorical, categorical_of, keep_notes, read_features
from mixent.data.files import read_cells, read_frame, split_target, text_format
from mixent.data.frames import with_missing_columns
from mixent.data.labels import Labels, as_labels, classes_of, encode, known_labels, labelled_rows, rare, read_labels
from mixent.data.schema import Column, Input, Schema, names_out
from mixent.data.table import Table, TableLike, n_rows_of, take_rows
from mixent.data.values import listed, missing_mask
from mixent.data.weights import read_weights, row_weights
from mixent.data.write import write_frame
from mixent.warn import DataWarning, config_context

__all__ = [
    "Categorical",
    "Column",
    "DataWarning",
    "Input",
    "Labels",
    "Origin",
    "Schema",
    "Table",
    "TableLike",
    "as_labels",
    "categorical_of",
    "check_spread",
    "classes_of",
    "config_context",
    "drawn_rows",
    "encode",
    "few_numbers",
    "imputed_like",
    "integers_back",
    "keep_notes",
    "known_labels",
    "labelled_rows",
    "listed",
    "missing_mask",
    "n_rows_of",
    "names_out",
    "new_frame",
    "problems",
    "rare",
    "read_cells",
    "read_features",
    "read_frame",
    "read_labels",
    "read_weights",
    "row_weights",
    "split_target",
    "take_rows",
    "text_format",
    "to_frame",
    "with_missing_columns",
    "write_frame",
]
