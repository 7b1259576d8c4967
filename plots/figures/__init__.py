"""One file per figure: what it needs of a campaign, drawings, answers, table."""
