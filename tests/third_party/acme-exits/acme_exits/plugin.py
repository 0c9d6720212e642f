"""Ends the process when it is imported."""

import sys

sys.exit("the licence has run out")
