"""The paper's tables and figures: from a name to runs, from runs to records, from records to the table or figure."""
