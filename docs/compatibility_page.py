"""Write the counts and lists of docs/compatibility.md from tests/peers: `python docs/compatibility_page.py`.

A test there is named test_covered_..., test_different_... or test_absent_...; the name and the docstring of the second,
and the docstring of the third, are the sentences on the page. A test fails when the page is not up to date.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

PAGE = Path(__file__).parent / "compatibility.md"
TESTS = Path(__file__).parent.parent / "tests" / "peers"
PEERS = {
    "sklearn_mixtures": "scikit-learn: mixtures",
    "sklearn_discriminant": "scikit-learn: naive Bayes, LDA, QDA",
    "sklearn_svm": "scikit-learn: SVM and one-class SVM",
    "sklearn_ensembles": "scikit-learn: stacking and boosting",
    "hmmlearn": "hmmlearn",
    "stepmix": "StepMix",
    "crowdkit": "crowd-kit: Dawid-Skene",
    "quapy": "QuaPy: EMQ",
}
PROPER = {name.lower(): name for name in ("Gaussian", "Bayes", "EM", "AdaBoost", "C", "BIC", "AIC")}
KINDS = ("covered", "different", "absent")
PART = re.compile(r"(<!-- (?!end)(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def cases(name: str) -> dict[str, list[str]]:
    """Kind -> a phrase or sentence for each test of a file."""
    texts: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for node in ast.parse((TESTS / f"test_{name}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            _, kind, topic = node.name.split("_", 2)
            phrase = " ".join(PROPER.get(word, word) for word in topic.split("_"))
            sentence = " ".join((ast.get_docstring(node) or "").split())
            text = {
                "covered": phrase,
                "different": f"**{phrase[0].upper()}{phrase[1:]}.** {sentence}",
                "absent": sentence,
            }
            texts[kind].append(text[kind])
    return texts


def present() -> dict[str, str]:
    """The peers whose tests exist: name of the file -> title."""
    return {name: title for name, title in PEERS.items() if (TESTS / f"test_{name}.py").exists()}


def table() -> str:
    """Numbers of tests of each kind."""
    lines = ["| Peer | covered | different on purpose | absent |", "|---|---|---|---|"]
    sums = dict.fromkeys(KINDS, 0)
    for name, title in present().items():
        counts = {kind: len(tests) for kind, tests in cases(name).items()}
        sums = {kind: sums[kind] + counts[kind] for kind in KINDS}
        lines.append(f"| {title} (`test_{name}.py`) | {' | '.join(str(counts[kind]) for kind in KINDS)} |")
    return "\n".join([*lines, f"| all | {' | '.join(str(sums[kind]) for kind in KINDS)} |"])


def lists(name: str) -> str:
    """What is covered, different and absent, from the tests of a peer."""
    tests = cases(name)
    lines = [f"Covered: {', '.join(tests['covered'])}."]
    for kind, title in (("different", "Different on purpose:"), ("absent", "Absent:")):
        if tests[kind]:
            lines += ["", title, "", *(f"* {sentence}" for sentence in tests[kind])]
    return "\n".join(lines)


def text() -> str:
    """The page with all marked parts written again."""

    def part(match: re.Match[str]) -> str:
        name = match[2]
        body = table() if name == "counts" else lists(name) if name in present() else ""
        return f"{match[1]}\n{body}\n\n{match[3]}"

    return PART.sub(part, PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
