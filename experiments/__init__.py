"""The paper's tables and figures, from runs to records to tables: ``python -m experiments``."""
