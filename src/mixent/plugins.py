"""Names for estimators of other packages, which appear in every command, page and file; see docs/plugins.md."""

from mixent.base.capabilities import NO, YES, Capabilities, able, no, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Bullets, Code, Document, Figure, Number, Paragraph, Section, Table
from mixent.base.options import Estimator, Options
from mixent.base.recipes import Recipe, Setting, Shape
from mixent.base.registry import Entry, entries, register

__all__ = [
    "NO",
    "YES",
    "Bullets",
    "Capabilities",
    "Code",
    "Document",
    "Entry",
    "Estimator",
    "Figure",
    "Number",
    "Options",
    "Paragraph",
    "ProbabilisticClassifier",
    "Recipe",
    "Section",
    "Setting",
    "Shape",
    "Table",
    "able",
    "class_facts",
    "classes_table",
    "document",
    "entries",
    "no",
    "register",
    "yes",
]
