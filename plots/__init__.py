"""From a results folder alone to the paper's figures, tables and report; measures nothing."""
