"""Cost models of a stored campaign: fitted on a half of it, judged by the other half."""
