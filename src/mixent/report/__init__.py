"""Reports: one self-contained HTML file."""

from mixent.base.document import Bullets, Code, Figure, Heading, Number, Paragraph, Section, Table
from mixent.report.comparison import comparison_report
from mixent.report.html import write_report
from mixent.report.model import model_report

__all__ = [
    "Bullets",
    "Code",
    "Figure",
    "Heading",
    "Number",
    "Paragraph",
    "Section",
    "Table",
    "comparison_report",
    "model_report",
    "write_report",
]
