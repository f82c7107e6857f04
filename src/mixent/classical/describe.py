"""Descriptions of fitted Parzen window and kernel Fisher classifiers: text, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Content, Document, Figure, Number, Paragraph, Section, canvas
from mixent.base.style import FAINT, INK, RING, class_style, color, legend, marker, plain, tidy
from mixent.base.text import class_name, count
from mixent.data.labels import as_labels, labelled_rows

if TYPE_CHECKING:
    from mixent.classical.kernel_fisher import KernelFisherClassifier
    from mixent.classical.parzen import ParzenClassifier

MOST_LISTED = 3  # discriminants whose class means are listed
MOST_POINTS = 5_000  # rows drawn
CRITERIA = {"conditional": "log p(class | row)", "likelihood": "log p(row | class)"}


def describe_parzen(model: ParzenClassifier) -> Document:
    """Describe the kernels, the bandwidths and how they were chosen."""
    bandwidths, tried = np.atleast_1d(model.bandwidth_), model.bandwidths_tried_
    n_windows = np.diff(model.windows_.starts)
    facts = {
        "classes": class_facts(model.classes_, model.class_prior_),
        "n_windows": int(n_windows.sum()),
        "bandwidth": bandwidths.tolist() if len(bandwidths) > 1 else float(bandwidths[0]),
        "criterion": model.criterion if tried else None,
        "tried": tried,
        "leave_one_out": _leave_one_out(model),
    }
    unit = "standard deviations of the columns" if model.standardize else "units of the columns"
    width = "A bandwidth for each class" if len(bandwidths) > 1 else f"Bandwidth {bandwidths[0]:.3g}"
    lead = (
        f"A kernel density estimate for each class, with {count(facts['n_windows'], 'kernel')}, one for each training "
        f"row. {width}, in {unit}, {_bandwidth_source(model)}."
    )
    more: dict[str, Sequence[Any]] = {"kernels": n_windows.tolist()}
    if len(bandwidths) > 1:
        more["bandwidth"] = [Number(f"{h:.3g}") for h in bandwidths]
    sections = [Section("Bandwidth", [_bandwidth_figure(model, bandwidths)])] if tried else []
    return _document(model, lead, sections, facts, more)


def describe_fisher(model: KernelFisherClassifier) -> Document:
    """Describe the discriminants, the kernel and the ridge penalty, and how they were chosen."""
    tried, n_discriminants = model.tried_, model.gaussians_.cov.shape[0]
    facts = {
        "classes": class_facts(model.classes_, model.class_prior_),
        "n_discriminants": n_discriminants,
        "kernel": next(iter(model.basis_.kernel.short_forms)),
        "gamma": None if model.gamma_ is None else float(model.gamma_),
        "shrinkage": float(model.shrinkage_),
        "tried": tried,
        "leave_one_out": _leave_one_out(model),
    }
    gamma = "" if model.gamma_ is None else f", gamma {model.gamma_:.3g}"
    varied = " and ".join(name for name in ("gamma", "shrinkage") if len({entry[name] for entry in tried}) > 1)
    chosen = f"; {varied} chosen from {len(tried)} settings by leave-one-out cross-validation" if varied else ""
    functions = "the function" if n_discriminants == 1 else "functions"
    lead = (
        f"{count(n_discriminants, 'Fisher discriminant')}: {functions} with the largest variance between classes "
        f"relative to the variance within classes. Kernel {facts['kernel']}{gamma}, shrinkage {model.shrinkage_:.3g}"
        f"{chosen}."
    )
    sections = [Section("Kernel and shrinkage", [_settings_figure(model)])] if len(tried) > 1 else []
    means = {
        f"mean of discriminant {q + 1}": [Number(f"{mean:.2f}") for mean in model.gaussians_.means[:, q]]
        for q in range(min(n_discriminants, MOST_LISTED))
    }
    return _document(model, lead, sections, facts, means)


def _document(
    model: Any, lead: str, sections: Sequence[Section], facts: Mapping[str, Any], more: Mapping[str, Sequence[Any]]
) -> Document:
    loo = facts["leave_one_out"]
    if loo["error"] is not None:
        text = f"Log-loss {loo['log_loss']:.3f} nats, error {100 * loo['error']:.1f} %."
        if len(facts["tried"]) > 1:
            text += " Slightly optimistic, since it was also used to choose the settings."
        sections = [*sections, Section("Leave-one-out cross-validation", [Paragraph(text)])]
    classes = classes_table(model.classes_, model.class_prior_, more)
    return document(model, lead, sections, facts=facts, classes=classes, schema=model.schema_)


def _leave_one_out(model: Any) -> dict[str, float | None]:
    scores = {"log_loss": float(model.loo_log_loss_), "error": float(model.loo_error_)}
    return {name: value if np.isfinite(value) else None for name, value in scores.items()}


# --- Parzen windows ---------------------------------------------------------------------------------------------------


def _bandwidth_source(model: ParzenClassifier) -> str:
    if model.bandwidths_tried_:
        likelihood = "conditional likelihood" if model.criterion == "conditional" else "likelihood"
        return f"chosen from {len(model.bandwidths_tried_)} by leave-one-out cross-validation ({likelihood})"
    if isinstance(model.bandwidth, str):
        return "by Scott's rule, since no class has two rows to choose it by cross-validation"
    return "as given"


def _bandwidth_figure(model: ParzenClassifier, bandwidths: np.ndarray) -> Figure:
    def draw() -> Any:
        page = canvas(6.0, 3.2)
        ax = page.subplots()
        h = np.array([entry["bandwidth"] for entry in model.bandwidths_tried_])
        value = np.array([entry["value"] for entry in model.bandwidths_tried_])
        ax.plot(h, value, color=color(0), marker="o", ms=3, lw=1.4, label="Same bandwidth for all classes")
        best = int(value.argmax())
        ax.plot(h[best], value[best], label="Best", **RING)
        if len(bandwidths) > 1:
            for c, bandwidth in enumerate(bandwidths):
                style = class_style(c) | {"lw": 1.0}
                ax.axvline(bandwidth, label=plain(class_name(model.classes_[c]), 20), **style)
        ax.set(xscale="log", xlabel="Bandwidth", ylabel="Log-likelihood (nats per row)")
        low = np.quantile(value[np.isfinite(value)], 0.5)  # narrow kernels have far lower values
        ax.set_ylim(low, value.max() + 0.08 * (value.max() - low) + 1e-9)
        tidy(ax)
        legend(ax, 2 + len(bandwidths) * (len(bandwidths) > 1))
        return page

    best = max(entry["value"] for entry in model.bandwidths_tried_)
    alt = f"Leave-one-out log-likelihood by bandwidth; the highest is {best:.3f} nats per row."
    caption = f"Leave-one-out mean of {CRITERIA[model.criterion]} for each bandwidth tried."
    return Figure(draw, alt, caption)


# --- kernel Fisher discriminant ---------------------------------------------------------------------------------------


def _settings_figure(model: KernelFisherClassifier) -> Figure:
    def draw() -> Any:
        page = canvas(6.4, 3.4)
        ax = page.subplots()
        gammas = list(dict.fromkeys(entry["gamma"] for entry in model.tried_))
        for i, gamma in enumerate(gammas):
            entries = [entry for entry in model.tried_ if entry["gamma"] == gamma]
            name = "" if gamma is None else f"gamma = {gamma:.3g}"
            x, loss = [entry["shrinkage"] for entry in entries], [entry["log_loss"] for entry in entries]
            ax.plot(x, loss, label=name, marker=marker(i), **class_style(i) | {"ms": 3.5, "lw": 1.2})
        best = min(model.tried_, key=lambda entry: entry["log_loss"])
        ax.plot(best["shrinkage"], best["log_loss"], label="Chosen", **RING)
        ax.set(xscale="log", xlabel="Shrinkage", ylabel="Leave-one-out log-loss (nats)")
        tidy(ax)
        legend(ax, len(gammas) + 1, beside=len(gammas) > 1)
        return page

    best = min(entry["log_loss"] for entry in model.tried_)
    alt = f"Leave-one-out log-loss by shrinkage and gamma; the lowest is {best:.3f} nats."
    return Figure(draw, alt, "Leave-one-out log-loss of each setting tried.")


def fisher_on_rows(model: KernelFisherClassifier, X: Any, y: Any) -> list[Content]:
    """Draw the rows along the first two discriminants, or a histogram along the only one of two classes."""
    scores = model.transform(X)
    labels = model.predict(X) if y is None else as_labels(y)
    labelled = labelled_rows(labels)
    drawn = np.flatnonzero(labelled)[:: max(1, int(labelled.sum()) // MOST_POINTS)]
    color_of = "predicted class" if y is None else "label"
    alt = f"Rows along {count(scores.shape[1], 'discriminant')}, colored by {color_of}."
    caption = (
        f"Rows along the discriminants, colored by {color_of}. Each discriminant has variance 1 within classes. "
        "Crosses mark the class means."
    )
    names = np.array([str(label) for label in labels[drawn]])
    draw = _histograms if scores.shape[1] == 1 else _scatter
    return [Figure(lambda: draw(model, scores[drawn], names), alt, caption)]


def _histograms(model: KernelFisherClassifier, scores: np.ndarray, labels: np.ndarray) -> Any:
    page = canvas(6.4, 3.0)
    ax = page.subplots()
    bins = np.linspace(float(scores.min()), float(scores.max()), 41)
    for c, label in enumerate(model.classes_):
        ax.hist(
            scores[labels == str(label), 0], bins=bins, color=color(c), alpha=0.55, label=plain(class_name(label), 24)
        )
        ax.plot(model.gaussians_.means[c, 0], 0, marker="X", ms=9, color=INK, mec="white", clip_on=False, zorder=4)
    ax.set(xlabel="Discriminant 1", ylabel="Number of rows")
    tidy(ax)
    legend(ax, len(model.classes_))
    return page


def _scatter(model: KernelFisherClassifier, scores: np.ndarray, labels: np.ndarray) -> Any:
    page = canvas(6.6, 4.4)
    ax = page.subplots()
    ax.axhline(0, color=FAINT, lw=0.5, zorder=0)
    for c, label in enumerate(model.classes_):
        points, style = scores[labels == str(label)], {"ls": "none", "ms": 4, "alpha": 0.6, "mew": 0}
        ax.plot(*points[:, :2].T, color=color(c), marker=marker(c), label=plain(class_name(label), 24), **style)
    means = model.gaussians_.means
    ax.plot(means[:, 0], means[:, 1], ls="none", marker="X", ms=9, color=INK, mec="white", zorder=4)
    ax.set(xlabel="Discriminant 1", ylabel="Discriminant 2")
    tidy(ax)
    legend(ax, len(model.classes_), beside=len(model.classes_) > 6)
    return page
