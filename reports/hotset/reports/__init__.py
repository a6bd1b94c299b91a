"""Evaluation of a run: the result document, its statistics, tables, charts and report.

Read in this order: `document` (the record of a run), `stats` (the factor and its interval),
`caveats` (what limits the claim), `answer` (the sentence and figures every renderer shares),
then the renderers: `tables` (rows, CSV), `terminal`, and `html` with its `charts`, which `series`
bins and `vega` draws.
"""
