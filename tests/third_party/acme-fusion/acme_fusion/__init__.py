"""A fusion of cosine and keyword evidence."""
