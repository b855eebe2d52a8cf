"""Sets out of distribution: what they are, their rows, and the numbers that their authors report."""

from evaluation.classifiers.ood.imagenet import imagenet_a_classes, imagenet_a_columns
from evaluation.classifiers.ood.read import OodRows, read_ood
from evaluation.classifiers.ood.report import report
from evaluation.classifiers.ood.spec import OodSpec, is_ood, list_sets, load_ood_spec

__all__ = [
    "OodRows",
    "OodSpec",
    "imagenet_a_classes",
    "imagenet_a_columns",
    "is_ood",
    "list_sets",
    "load_ood_spec",
    "read_ood",
    "report",
]
