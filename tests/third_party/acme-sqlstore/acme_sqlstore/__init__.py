"""A storage engine over SQLite that answers for many databases with one statement."""
