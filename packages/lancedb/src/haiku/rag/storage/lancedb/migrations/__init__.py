"""Steps from one schema version to the next. Each freezes the schemas that it reads and writes."""
