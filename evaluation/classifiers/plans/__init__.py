"""Plans of the tables: which sets, models and seeds; one TOML file each."""

from evaluation.classifiers.plans.spec import (
    IN_DISTRIBUTION,
    OUT_OF_DISTRIBUTION,
    ModelPlan,
    Plan,
    SetPlan,
    TablePlan,
    list_plans,
    load_plan,
)

__all__ = [
    "IN_DISTRIBUTION",
    "OUT_OF_DISTRIBUTION",
    "ModelPlan",
    "Plan",
    "SetPlan",
    "TablePlan",
    "list_plans",
    "load_plan",
]
