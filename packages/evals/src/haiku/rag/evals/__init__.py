"""Measuring how well databases are searched, from judged collections: `running.evaluate` is where it starts.

Nothing is imported here: `plugin`, which every start of the command line reads, is in this package.
"""
