"""Options that several commands share, and the words they take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ESCAPED = " Text a spreadsheet would run as a formula (=... and the like) gets a leading '."
Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Table: .csv, .tsv (also .gz) or .parquet.", show_default=False)
]
Target = Annotated[
    str,
    typer.Option("--target", "-t", metavar="COL", help="Column of class labels; blank cells are rows without a label."),
]
MODEL_HELP = (
    "mixture: a mixture for each class; shared: components that all classes share; maxent: maximum entropy; joint: one "
    "maximum entropy model of all columns; med: maximum entropy discrimination, linear or with a kernel; med-gaussian, "
    "med-tree, med-bayes-net: the same with Gaussians, with all trees at once, with Bayes nets whose edges you give; "
    "parzen: a window for each row; kernel-fisher: Fisher's discriminant in a kernel's space; "
    "hmm: each row is a sequence, a hidden Markov model for each class; stack: classifiers combined (--bases); boost, "
    "weightboost: boosting."
)
Model = Annotated[str, typer.Option("--model", metavar="NAME", help=MODEL_HELP, rich_help_panel="Model")]
Models = Annotated[
    list[str],
    typer.Option("--model", metavar="NAME", help=MODEL_HELP + " Repeat to compare.", rich_help_panel="Model"),
]
Components = Annotated[
    str,
    typer.Option(
        "--components",
        "-k",
        metavar="auto|N",
        help="Components of each class; of all classes together with --model shared. med-tree: trees of each class; "
        "auto is 1.",
        rich_help_panel="Model",
    ),
]
Covariance = Annotated[
    str,
    typer.Option(
        "--covariance",
        metavar="auto|NAME",
        help="Covariance structure: EII ... VVV, or diag, full, ...; hmm: of its states, auto is VVI.",
        rich_help_panel="Model",
    ),
]
PriorRows = Annotated[
    str,
    typer.Option(
        "--prior",
        metavar="auto|none|X",
        help="Strength of the prior, in pseudo-rows (med-tree, med-bayes-net: spread evenly over every table); for "
        "maxent, joint and stack the variance of the multipliers.",
        rich_help_panel="Model",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        "--objective",
        metavar="NAME",
        help="What is trained for: likelihood (of rows and classes; so unless given), conditional (of classes given "
        "rows), or error. med-tree, med-bayes-net: margin (so unless given), or likelihood.",
        rich_help_panel="Model",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        "--alpha",
        metavar="SHARE",
        min=0.0,
        max=1.0,
        help="For conditional: 1 is the conditional likelihood, 0 the likelihood; 1 unless given. med-gaussian, "
        "med-tree, med-bayes-net: the quantile of the models' own margins that is asked of every row; 0.1 unless "
        "given.",
        rich_help_panel="Model",
    ),
]
Validation = Annotated[
    float | None,
    typer.Option(
        "--validation",
        metavar="SHARE",
        help="For conditional, error and --selection validation: rows held out to learn when to stop.",
        rich_help_panel="Model",
    ),
]
Growth = Annotated[
    str,
    typer.Option(
        "--growth",
        metavar="NAME",
        help="How components are found: restart (all at once) or incremental (one by one).",
        rich_help_panel="Model",
    ),
]
Select = Annotated[
    str | None,
    typer.Option(
        "--select",
        metavar="NAME",
        help="How auto chooses: cv, bic, icl, dic, dic_robust or cbic; clusters: bic, icl or cv. maxent: forward adds "
        "features one by one.",
        rich_help_panel="Model",
    ),
]
MaxComponents = Annotated[
    int | None,
    typer.Option(
        "--max-components",
        metavar="N",
        min=1,
        help="Most that auto tries; for maxent and joint, of a column's mixture; for a stack with --latent, of its "
        "mixture.",
        rich_help_panel="Model",
    ),
]
PerClass = Annotated[
    bool,
    typer.Option(
        "--per-class", help="Let auto choose size and structure for each class apart.", rich_help_panel="Model"
    ),
]
MAXENT = "Maximum entropy"
Latent = Annotated[
    str | None,
    typer.Option(
        "--latent",
        metavar="NAME",
        help="What numbers become: union (hidden components of a mixture per class), class, pooled, quantize (bins) or "
        "moments; union unless given. stack: believe classifiers according to where the row lies, a cell of such a "
        "mixture of all columns (union, class or pooled); not unless given.",
        rich_help_panel=MAXENT,
    ),
]
Bins = Annotated[
    str | None,
    typer.Option(
        "--bins", metavar="NAME", help="For quantize: quantile, uniform or entropy bins.", rich_help_panel=MAXENT
    ),
]
NumberOfBins = Annotated[
    int | None,
    typer.Option("--n-bins", metavar="N", min=1, help="For quantize: most bins of a column.", rich_help_panel=MAXENT),
]
NoMeans = Annotated[
    bool,
    typer.Option(
        "--no-means",
        help="For union, class and pooled: constrain the hidden components only, not the columns' means as well.",
        rich_help_panel=MAXENT,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="auto|A,B;C,D",
        help="Columns that share a mixture: A with B, C with D; auto joins those that are correlated.",
        rich_help_panel=MAXENT,
    ),
]
Pairs = Annotated[
    str | None,
    typer.Option(
        "--pairs",
        metavar="auto|none|A,B;C,D",
        help="Pairs of features to constrain together: A with B, C with D. With --select forward, those it may add: "
        "these, none, or auto (all; so unless given).",
        rich_help_panel=MAXENT,
    ),
]
Selection = Annotated[
    str | None,
    typer.Option(
        "--selection",
        metavar="NAME",
        help="For --select forward: bic, or validation (rows held out, see --validation).",
        rich_help_panel=MAXENT,
    ),
]
Solver = Annotated[
    str | None,
    typer.Option(
        "--solver",
        metavar="NAME",
        help="auto, bohning, iis or lbfgs (joint: lbfgs or iis): the same optimum by other ways.",
        rich_help_panel=MAXENT,
    ),
]
Probabilistic = Annotated[
    list[str],
    typer.Option(
        "--probabilistic",
        metavar="NAME=A,B,...",
        help="Columns that hold the probabilities of a feature's values; repeat for more.",
        show_default=False,
        rich_help_panel=MAXENT,
    ),
]
DISCRIMINATION = "Maximum entropy discrimination"
Kernel = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="NAME",
        help="What stands for the inner product of rows: linear, poly, rbf, or fisher (of a mixture of the rows); "
        "linear unless given. med-gaussian: Gaussians of the columns unless given; poly or rbf, of kernel components.",
        rich_help_panel=DISCRIMINATION,
    ),
]
Bound = Annotated[
    str | None,
    typer.Option(
        "--c",
        metavar="auto|X",
        help="How much a row may say at most; auto, so unless given, chooses it by cross-validated log-loss.",
        rich_help_panel=DISCRIMINATION,
    ),
]
Margin = Annotated[
    str | None,
    typer.Option(
        "--margin",
        metavar="NAME",
        help="Prior of the margins: exponential, laplace, gaussian, or fixed (every row keeps it; not med-gaussian).",
        rich_help_panel=DISCRIMINATION,
    ),
]
Bias = Annotated[
    str | None,
    typer.Option(
        "--bias",
        metavar="flat|X",
        help="Prior of the threshold between classes: flat (unless given; 1 for med-bayes-net), or the variance of a "
        "Gaussian.",
        rich_help_panel=DISCRIMINATION,
    ),
]
Gamma = Annotated[
    str | None,
    typer.Option(
        "--gamma",
        metavar="scale|X",
        help="For poly and rbf: scale of the kernel; 1 / (columns x their variance) unless given; kernel-fisher: "
        "auto, so unless given, chooses it.",
        rich_help_panel=DISCRIMINATION,
    ),
]
Degree = Annotated[
    int | None,
    typer.Option(
        "--degree", metavar="N", min=1, help="For poly: its degree; 3 unless given.", rich_help_panel=DISCRIMINATION
    ),
]
CalibrationName = Annotated[
    str | None,
    typer.Option(
        "--calibration",
        metavar="NAME",
        help="How scores become probabilities: temperature (so unless given) or affine, on rows held out; predictive "
        "(med-gaussian, med-bayes-net: Bayes' rule); or none.",
        rich_help_panel=DISCRIMINATION,
    ),
]
NumberOfFeatures = Annotated[
    int | None,
    typer.Option(
        "--n-features",
        metavar="N",
        min=1,
        help="For poly and rbf: features that stand in for the kernel; unless given, only for many rows. med-gaussian: "
        "kernel components; 10 unless given.",
        rich_help_panel=DISCRIMINATION,
    ),
]
CLASSICAL = "Parzen windows, kernel Fisher discriminant"
Bandwidth = Annotated[
    str | None,
    typer.Option(
        "--bandwidth",
        metavar="auto|X",
        help="parzen: width of the windows in standard deviations; auto, so unless given, chooses it by leaving each "
        "row out.",
        rich_help_panel=CLASSICAL,
    ),
]
Shrinkage = Annotated[
    str | None,
    typer.Option(
        "--shrinkage",
        metavar="auto|X",
        help="kernel-fisher: how smooth discriminants are asked to be; auto, so unless given, chooses it by leaving "
        "each row out.",
        rich_help_panel=CLASSICAL,
    ),
]
STRUCTURES = "Trees, Bayes nets, sequences"
Structure = Annotated[
    str | None,
    typer.Option(
        "--structure",
        metavar="NAME|A,B;C,D",
        help="med-tree: trees of each class are separate (so unless given), or shared by all classes. med-bayes-net: "
        "naive (columns depend on the class alone; so unless given), or edges from A to B, from C to D.",
        rich_help_panel=STRUCTURES,
    ),
]
Tables = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="NAME",
        help="med-tree: tables of every edge are fixed (the class's own; so unless given), or integrated: learned with "
        "the structure.",
        rich_help_panel=STRUCTURES,
    ),
]
Numbers = Annotated[
    str | None,
    typer.Option(
        "--numbers",
        metavar="NAME",
        help="med-tree: numbers are gaussian, or quantized (softly, by a mixture of each column); unless given, "
        "whichever has the lower cross-validated log-loss.",
        rich_help_panel=STRUCTURES,
    ),
]
States = Annotated[
    int | None,
    typer.Option(
        "--states", metavar="N", min=1, help="hmm: states of each class; 2 unless given.", rich_help_panel=STRUCTURES
    ),
]
Topology = Annotated[
    str | None,
    typer.Option(
        "--topology",
        metavar="NAME",
        help="hmm: full (any state may follow any; so unless given), or left-right (never back).",
        rich_help_panel=STRUCTURES,
    ),
]
Transitions = Annotated[
    str | None,
    typer.Option(
        "--transitions",
        metavar="NAME",
        help="hmm: shared by all steps (so unless given), or per_step. --combine hmm: likewise.",
        rich_help_panel=STRUCTURES,
    ),
]
Sequence = Annotated[
    str | None,
    typer.Option(
        "--sequence",
        metavar="COL",
        help="hmm: a row is a step, and rows with the same value in this column are a sequence, in their order; "
        "without it, each row is a sequence.",
        rich_help_panel=STRUCTURES,
    ),
]
ENSEMBLES = "Ensembles"
Bases = Annotated[
    str | None,
    typer.Option(
        "--bases",
        metavar="A,B,...",
        help="stack: the classifiers that are combined, by the names of --model, and scikit-learn's logistic and "
        "naive-bayes; mixture,maxent,med unless given, none with --outputs. Options that the combination does not take "
        "are for these.",
        rich_help_panel=ENSEMBLES,
    ),
]
Outputs = Annotated[
    list[str],
    typer.Option(
        "--outputs",
        metavar="NAME=A[,B,...]",
        help="stack: a classifier whose answers stand in the table: its label in a column, or its probabilities of the "
        "classes, in sorted order, in several. The others do not see these columns. Repeat for more.",
        show_default=False,
        rich_help_panel=ENSEMBLES,
    ),
]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="NAME",
        help="boost, weightboost: the classifier that is trained again and again, as for --bases; Gaussian naive Bayes "
        "unless given. Options that boosting does not take are for it.",
        rich_help_panel=ENSEMBLES,
    ),
]
Stages = Annotated[
    int | None,
    typer.Option(
        "--stages",
        metavar="N",
        min=1,
        help="boost, weightboost: most stages; 50 unless given.",
        rich_help_panel=ENSEMBLES,
    ),
]
Combine = Annotated[
    str | None,
    typer.Option(
        "--combine",
        metavar="NAME",
        help="How classifiers are combined: maxent (maximum entropy; a stack unless given) or hmm (a hidden Markov "
        "model per class). Stages of a boosting: votes (unless given), maxent or hmm.",
        rich_help_panel=ENSEMBLES,
    ),
]
ConstraintsName = Annotated[
    str | None,
    typer.Option(
        "--constraints",
        metavar="NAME",
        help="Combined by maxent: full (every class with every label; so unless given), or diagonal (each class with "
        "its own label).",
        rich_help_panel=ENSEMBLES,
    ),
]
Decisions = Annotated[
    str | None,
    typer.Option(
        "--decisions",
        metavar="NAME",
        help="What classifiers say: auto (probabilities where they have them; so unless given), soft, or hard (the "
        "label alone).",
        rich_help_panel=ENSEMBLES,
    ),
]
Ignore = Annotated[
    list[str],
    typer.Option(
        "--ignore", metavar="COL", help="Column to leave out, or several as A,B; repeat for more.", show_default=False
    ),
]
Categorical = Annotated[
    list[str],
    typer.Option(
        "--categorical",
        metavar="COL",
        help="Column of numbers that are codes, or several as A,B; repeat for more. Read as they are written: 01 is "
        "not 1.",
        show_default=False,
    ),
]
LEFT_OUT = typer.Option(
    "--ignore",
    "--drop",
    metavar="NAME",
    help="Column, or source, to leave out, or several as A,B; repeat for more.",
    show_default=False,
)
Long = Annotated[
    str | None,
    typer.Option(
        "--long",
        metavar="COLS",
        help="The table is long, a row for each answer: its columns, as item,source,value; with a fourth, the "
        "probability the source gives to the value.",
    ),
]
Item = Annotated[str | None, typer.Option("--item", metavar="COL", help="Column that names the items.")]
Weight = Annotated[str | None, typer.Option("--weight", metavar="COL", help="Column of row weights.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Same seed, same result.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Threads; all cores unless given.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
