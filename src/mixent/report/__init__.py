"""Reports: one self-contained HTML file."""

from mixent.report.build import comparison_report
from mixent.report.html import Bullets, Code, Figure, Number, Paragraph, Section, Table, write_report

__all__ = [
    "Bullets",
    "Code",
    "Figure",
    "Number",
    "Paragraph",
    "Section",
    "Table",
    "comparison_report",
    "write_report",
]
