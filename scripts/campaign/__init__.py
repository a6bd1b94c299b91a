"""Campaigns that try to lose data: verbs cut short, power cuts, boots by the installed unit."""
