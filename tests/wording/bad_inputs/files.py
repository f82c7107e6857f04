"""Files, good and bad: tables, costs and models. Each is made in an empty folder."""

import gzip
import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.naive_bayes import GaussianNB

from mixent import AdaBoostM1Classifier, load, save
from mixent.core.serialize import FORMAT
from mixent.data import read_features, read_frame, read_labels, read_weights, split_target, to_frame, write_frame
from mixent.persistence import SavedFileError

from .cases import X, classifier, defined, frame, nothing, refused, y

rng = np.random.default_rng(1)
LINES = [f"{rng.normal() + 3 * (i % 2):.3f},{'ab'[rng.integers(2)]},{'pq'[i % 2]}" for i in range(20)]
ROWS = "\n".join(["x,c,y", *LINES]) + "\n"
FOUR = "x,y\n1,p\n2,q\n3,p\n4,q\n"


def parquet(**columns):
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


GOOD_PARQUET = parquet(x=[1.0, 2.0, 3.0, 4.0], y=list("pqpq"))

# files no table can be read from: contents, and what the message must say
NO_TABLES = {
    "empty.csv": ("", "empty.csv: the file is empty; a table needs a header"),
    "blank.csv": ("\n\n\n", "the file is empty"),
    "header.csv": ("x,y\n", "no rows below the header"),
    "ragged_long.csv": ("x,y\n1,p\n2,q,3\n", "line 3 has 3 values, the header has 2"),
    "title.csv": ("Pumps of 2024;;\nx;c;y\n1;a;p\n", "the first line names 1 of 3 columns; delete the lines above"),
    "either.csv": ("a,b;c\n1,2;3\n", r"',' or ';' may separate the columns; give the separator .--sep."),
    "ragged_short.csv": ("x,y\n1,p\n2\n3,q\n", "line 3 has 1 values, the header has 2"),
    "comment.csv": ("# made by hand\n" + FOUR, "line 2 has 2 values, the header has 1"),
    "no_header.csv": ("1,2\n3,4\n", "a header line with column names is needed"),
    "open_quote.csv": ('x,y\n1,"p\n2,q\n3,p\n', "not a readable table"),
    "closed_late.csv": ('x,y\n"1""', "line 2 has 1 values"),
    "long_field.csv": ("x,c,y\n1," + "a" * 200_000 + ",p\n2,b,q\n", "field larger than field limit.*line 2"),
    "zero_bytes.csv": ("x,y\n\0,p\n", "binary data, not text"),
    "every_byte.csv": (bytes(range(1, 256)) * 4, "binary data, not text"),
    "not_gzip.csv.gz": (FOUR, "not a whole gzip file"),
    "cut.csv.gz": (gzip.compress(ROWS.encode())[:60], "not a whole gzip file"),
    "empty_inside.csv.gz": (gzip.compress(b""), "the file is empty"),
    "junk_after.csv.gz": (gzip.compress(ROWS.encode()) + b"junk", "not a whole gzip file"),
    "text.parquet": ("this is no table", "not a readable Parquet file"),
    "cut.parquet": (GOOD_PARQUET[: len(GOOD_PARQUET) // 2], "not a readable Parquet file"),
    "cut_end.parquet": (GOOD_PARQUET[:-4], "not a readable Parquet file"),
    "no_rows.parquet": (parquet(x=pa.array([], pa.float64()), y=pa.array([], pa.string())), "no rows below the header"),
    "no_ending": (FOUR, "unknown kind of file ''"),
}

# tables that can be read, but not fitted with target y
NO_FITS = {
    "one_class.csv": ("x,y\n1,p\n2,p\n3,p\n", "at least 2 classes; y has 1 class: 'p'"),
    "one_row.csv": ("x,y\n1,p\n", "at least 2 classes"),
    "no_labels.csv": ("x,y\n1,\n2,?\n3,NA\n", "every label in y is absent"),
    "all_blank.csv": ("x,y\n,\n,\n", "no column of X can be used: 'x' have no values"),
    "only_target.csv": ("y\np\nq\n", "'y' is the only column"),
    "measured_target.csv": ("x,y\n1,0.5\n2,0.25\n3,0.75\n", "Unknown label type: continuous"),
    "tiny.csv": ("x,y\n1e-300,p\n2e-300,q\n3e-300,p\n", "column 'x' varies by only 2e-300"),
    "dated_target.parquet": (
        parquet(x=[1.0, 2, 3, 4], y=pa.array([1, 2, 1, 2], pa.timestamp("s"))),
        "Unknown label type",
    ),
    "lists.parquet": (parquet(l=[[1]] * 4, y=list("pqpq")), "column 'l', row 0 holds a"),
    "structs.parquet": (parquet(s=[{"a": 1}] * 4, y=list("pqpq")), "column 's', row 0 holds a dict"),
    "bytes.parquet": (parquet(b=[b"a", b"b"] * 2, y=list("pqpq")), "column 'b' holds bytes"),
    "identifiers.csv": (
        "id,y\n" + "".join(f"u{i},{'pq'[i % 2]}\n" for i in range(2000)),
        "no column of X can be used: 'id' have no values or are identifiers",
    ),
}

# odd tables that can be fitted
FITS = {
    "crlf.csv": ROWS.replace("\n", "\r\n"),
    "cr.csv": ROWS.replace("\n", "\r"),
    "bom.csv": "\ufeff" + ROWS,
    "no_last_newline.csv": ROWS.rstrip("\n"),
    "blank_lines.csv": "\n\n" + ROWS.replace("\n", "\n\n"),
    "spaces.csv": ROWS.replace(",", " , "),
    "whole.csv.gz": gzip.compress(ROWS.encode()),
    "semicolon.csv": ROWS.replace(",", ";"),
    "tab.csv": ROWS.replace(",", "\t"),
    "bar.txt": ROWS.replace(",", "|"),
    "comma.tsv": ROWS,
    "nameless.csv": ROWS.replace("\n", "\n0,").removesuffix("0,").replace("x,", ",x,", 1),
    "nameless_last.csv": ROWS.replace("\n", ",\n"),
    "twice.csv": ROWS.replace("x,c", "x,x"),
    "utf16.csv": ROWS.encode("utf-16"),
    "latin.csv": ROWS.replace("a", "é").encode("latin-1"),
    "tabs.tsv": ROWS.replace(",", "\t"),
    "quoted_lines.csv": 'x,c,y\n1,"a\nb",p\n2,c,q\n3,"a\nb",p\n4,c,q\n',
    "stray_quote.csv": 'x,y\n1,p"\n2,q\n3,p"\n4,q\n',
    "markup.csv": "[bold],x,y\n1,2,[red]\n2,3,[/]\n3,3,[red]\n1,1,[/]\n",
    "formulas.csv": "=cmd(),x,y\n1,2,=1+1\n2,3,@q\n3,3,=1+1\n1,1,@q\n",
    "beyond_ascii.csv": "größe,日本,y\n1,2,ä\n2,3,ö\n3,3,ä\n1,1,ö\n",
    "escapes.csv": "x,c,y\n1,\x1b[31mred,p\n2,b,q\n3,\x1b[31mred,p\n4,b,q\n",
    "long_words.csv": "x,c,y\n1," + "a" * 100_000 + ",p\n2,b,q\n3,b,p\n4,b,q\n",
    "one_row_classes.csv": "x,y\n1,p\n2,q\n",
    "truth.csv": "x,b,y\n1,True,p\n2,False,q\n3,,p\n4,True,q\n",
    "numbered_classes.csv": "x,y\n1,1\n2,2\n3,\n4,2\n5,1\n",
    "true_classes.csv": "x,y\n1,True\n2,False\n3,True\n4,False\n",
    "constant.csv": "x,z,y\n1,5,p\n2,5,q\n3,5,p\n4,5,q\n",
    "nothing_varies.csv": "z,y\n5,p\n5,q\n5,p\n5,q\n",
    "thirty_digits.csv": "x,y\n" + "9" * 30 + ",p\n2,q\n3,p\n4,q\n",
    "beyond_int64.csv": "x,y\n-9223372036854775808,p\n18446744073709551615,q\n3,p\n4,q\n",
    "day_names.csv": "d,x,y\n" + "".join(f"2020-01-{i:02d},{i},{'pq'[i % 2]}\n" for i in range(1, 29)),
    "every_row_a_class.csv": "x,y\n" + "".join(f"{i},c{i}\n" for i in range(30)),
    "no_values.csv": "x,z,y\n1,,p\n2,NA,q\n3,?,p\n4,,q\n",
    "infinite.csv": "x,y\n1,p\ninf,q\n3,p\n4,q\n",
    "huge.csv": "x,y\n1,p\n1e200,q\n3,p\n4,q\n",
    "digits.csv": "x,y\n" + "9" * 400 + ",p\n2,q\n3,p\n4,q\n",
    "stray_word.csv": "x,y\n" + "".join(f"{i},{'pq'[i % 2]}\n" for i in range(60)) + "n/k,p\n",
    "dates.parquet": parquet(d=pa.array([1, 2, 3, 4], pa.timestamp("s")), y=list("pqpq")),
    "nulls.parquet": parquet(n=pa.nulls(4), x=[1.0, 2, 3, 4], y=list("pqpq")),
    "decimals.parquet": parquet(x=pa.array([1, 2, 3, 4], pa.decimal128(5, 2)), y=list("pqpq")),
    "gaps.parquet": parquet(x=pa.array([1, None, 3, 4]), y=["p", "q", None, "q"]),
}


def make(name, content):
    """Write a file into the current folder."""
    path = Path(name)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# models

_made = {}


def model_bytes():
    """A good model file."""
    if "model" not in _made:
        frame = pd.read_csv(io.StringIO(ROWS))
        save(classifier().fit(frame[["x", "c"]], frame["y"]), "good.mixent")
        _made["model"] = Path("good.mixent").read_bytes()
    return _made["model"]


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as pack:
        for name, content in members.items():
            pack.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


def header(**fields):
    start = {"format": "mixent", "format_version": FORMAT, "n_arrays": 0}
    return zipped(header__json=json.dumps({**start, **fields}))


def altered(change):
    """A good model whose header was changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(model_bytes())) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "header.json":
                tree = json.loads(content)
                change(tree)
                content = json.dumps(tree)
            new.writestr(name, content)
    return buffer.getvalue()


def flipped():
    whole = model_bytes()
    return whole[:200] + bytes(b ^ 0xFF for b in whole[200:230]) + whole[230:]


BAD_MODELS = {
    "empty.mixent": (lambda: b"", "not a mixent file"),
    "text.mixent": (lambda: b"this is no model", "not a mixent file"),
    "pickle.mixent": (lambda: pickle.dumps({"a": 1}), "not a mixent file"),
    "half.mixent": (lambda: model_bytes()[: len(model_bytes()) // 2], "not a mixent file"),
    "cut.mixent": (lambda: model_bytes()[:-30], "not a mixent file"),
    "flipped.mixent": (flipped, "flipped.mixent"),
    "foreign_zip.mixent": (lambda: zipped(a__txt="b"), "is a zip file but not a mixent model"),
    "other_format.mixent": (lambda: header(format="other"), "is a zip file but not a mixent model"),
    "broken_header.mixent": (lambda: zipped(header__json="{"), "damaged"),
    "list_header.mixent": (lambda: zipped(header__json="[1]"), "is a zip file but not a mixent model"),
    "newer.mixent": (lambda: header(format_version=99), "format version 99; .* install a newer mixent"),
    "other_object.mixent": (
        lambda: header(model={"$object": "os.system", "state": {}}),
        "contains an object of unknown type 'os.system'",
    ),
    "a_number.mixent": (lambda: header(model=5), "holds a int, not a model"),
    "no_arrays.mixent": (lambda: header(n_arrays=7, model={}), "damaged"),
    "no_model.mixent": (lambda: header(), "damaged"),
    "no_parameters.mixent": (lambda: altered(lambda tree: tree["model"]["state"].pop("params_")), "params_ is missing"),
    "no_schema.mixent": (lambda: altered(lambda tree: tree["model"]["state"].pop("schema_")), "schema_ is missing"),
    "wrong_schema.mixent": (
        lambda: altered(lambda tree: tree["model"]["state"].update(schema_=5)),
        "schema_ is missing or is not of type",
    ),
}

fitted = classifier().fit(X, y)


def read_bad(name, content):
    return lambda: read_frame(make(name, content))


def load_bad(name, content):
    return lambda: load(make(name, content()))


class Bare:
    """An estimator that knows nothing."""


CASES = [
    *refused(ValueError, "", {f"read {name}": (read_bad(name, c), m) for name, (c, m) in NO_TABLES.items()}),
    *refused(SavedFileError, "", {f"load {name}": (load_bad(name, c), m) for name, (c, m) in BAD_MODELS.items()}),
    *refused(
        SavedFileError,
        "more than max_bytes=10; increase max_bytes",
        {"load more than allowed": lambda: (save(fitted, "m.mixent"), load("m.mixent", max_bytes=10))},
    ),
    *refused(
        FileNotFoundError,
        "No such file",
        {
            "read a missing file": (lambda: read_frame("none.csv"), "no such file: none.csv"),
            "read a misspelt file": (
                lambda: (make("data.csv", FOUR), read_frame("dato.csv")),
                "did you mean 'data.csv'",
            ),
            "read from a missing folder": (lambda: read_frame("no/data.csv"), "no such file"),
            "write to a missing folder": (
                lambda: write_frame(frame(), "no/data.csv"),
                "folder 'no' does not exist; create it",
            ),
            "load a missing file": lambda: load("none.mixent"),
            "save to a missing folder": lambda: save(fitted, "no/m.mixent"),
        },
    ),
    *refused(
        IsADirectoryError,
        "[Ii]s a directory",
        {
            "read a folder": (lambda: (Path("f.csv").mkdir(), read_frame("f.csv")), "f.csv is a folder; give a file"),
            "write over a folder": (lambda: (Path("f.csv").mkdir(), write_frame(frame(), "f.csv")), "it is a folder"),
            "load a folder": lambda: load("."),
            "save over a folder": (lambda: (Path("f").mkdir(), save(fitted, "f")), "f is not a regular file"),
        },
    ),
    *refused(
        TypeError,
        "save takes a mixent estimator .*; got",
        {
            "save a number": lambda: save(3, "m.mixent"),
            "save a class": lambda: save(type(fitted), "m.mixent"),
            "save nothing": lambda: save(None, "m.mixent"),
            "save to no name": (lambda: save(fitted, None), "expected str"),
            "load no name": (lambda: load(None), "expected str"),
            "save with a base of another library": (
                lambda: save(AdaBoostM1Classifier(GaussianNB(), 2).fit(X, y), "m.mixent"),
                "the base of the model is a GaussianNB of scikit-learn, .*; take mixent bases, or save.model, path, ",
            ),
            "trust a word": (lambda: load("m.mixent", trusted="numpy"), "trusted must be a list of names of types"),
            "save with a generator as seed": (
                lambda: save(classifier(random_state=np.random.RandomState(0)).fit(X, y), "m.mixent"),
                "random_state is a RandomState, which a mixent file cannot hold; set it to plain values",
            ),
            "write an array": (lambda: write_frame(X, "x.csv"), "only a DataFrame can be written; got a ndarray"),
        },
    ),
    *refused(
        ValueError,
        "",
        {
            "foreign parts by pickle": (
                lambda: save(fitted, "m.mixent", foreign="pickle"),
                "foreign must be 'skops' or None; got 'pickle'",
            ),
            "write an unknown kind": (lambda: write_frame(frame(), "x.doc"), "unknown kind of file '.doc'; use one of"),
            "no such target": (lambda: split_target(frame(), "c"), "unknown column 'c'; the columns are 'a', 'b'"),
            "misspelt target": (lambda: split_target(frame(size=1), "sizes"), "did you mean 'size'"),
            "only the target": (lambda: split_target(frame()[["a"]], "a"), "'a' is the only column"),
            "labels none of the classes": (
                lambda: read_labels(["a", "z"], 2, classes=["a", "b"]),
                "label 'z', which is none",
            ),
            "probabilities for other classes": (
                lambda: read_labels(pd.DataFrame({"a": [1.0], "z": [0.0]}), 1, classes=["a", "b"]),
                "but the classes are",
            ),
            "weights of another length": (lambda: read_weights([1, 2], 3), "one value per row .3.; its shape is .2,."),
        },
    ),
    *defined(
        nothing,
        {
            "save over a file": lambda: (make("m.mixent", "old"), save(fitted, "m.mixent"))[1],
            "save with a function for progress": lambda: save(
                classifier(progress=lambda *told: None).fit(X, y), "m.mixent"
            ),
        },
    ),
    *defined(
        lambda n_quoted: np.testing.assert_equal(n_quoted, 2),
        {"write formulas": lambda: write_frame(pd.DataFrame({"=1": ["=cmd()", "+1", None]}), "x.csv")},
    ),
    *defined(
        lambda n_quoted: np.testing.assert_equal(n_quoted, 0),
        {"write no rows": lambda: write_frame(frame().iloc[:0], "x.csv")},
    ),
    *defined(
        lambda table: np.testing.assert_array_equal(table.isna().sum(), [1, 1]),
        {
            "a table of gaps and back": lambda: (lambda t: to_frame(t.schema, t.X, t.codes))(
                read_features(Bare(), [[1, None], [None, "b"]], reset=True)
            )
        },
    ),
]
