"""Reports: one self-contained HTML file."""

from mixent.base.document import Bullets, Code, Figure, Heading, Number, Paragraph, Section, Table
from mixent.report.build import comparison_report
from mixent.report.fusion import fusion_report
from mixent.report.html import write_report
from mixent.report.model import model_report
from mixent.report.novelty import novelty_report

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
    "fusion_report",
    "model_report",
    "novelty_report",
    "write_report",
]
