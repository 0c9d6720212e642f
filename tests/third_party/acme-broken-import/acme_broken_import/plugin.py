"""Needs a library that nobody has."""

import acme_library_that_nobody_has

value = acme_library_that_nobody_has.value
