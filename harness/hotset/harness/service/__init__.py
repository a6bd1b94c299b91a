"""What the console and the HTTP API both stand on: the CLI's verbs as data, and long verbs as jobs.

:mod:`~hotset.harness.service.verbs` names the verbs and makes their request models from the CLI's
own parser, :mod:`~hotset.harness.service.now` runs a verb that answers at once, and
:mod:`~hotset.harness.service.jobs` starts, follows and cancels those that take their time. Both run
the CLI itself as a child process (:mod:`~hotset.harness.service.child`).
"""
