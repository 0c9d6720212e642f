CREATE TABLE IF NOT EXISTS databases (name TEXT PRIMARY KEY, identity TEXT);
CREATE TABLE IF NOT EXISTS documents (
    key INTEGER PRIMARY KEY,
    home TEXT NOT NULL,
    id TEXT NOT NULL,
    uri TEXT,
    title TEXT,
    created_at TEXT NOT NULL,
    body TEXT NOT NULL,
    items TEXT NOT NULL,
    UNIQUE (home, id),
    UNIQUE (home, uri)
);
CREATE TABLE IF NOT EXISTS pictures (document INTEGER NOT NULL, ref TEXT NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS pictures_of ON pictures (document);
CREATE TABLE IF NOT EXISTS chunks (
    key INTEGER PRIMARY KEY,
    document INTEGER NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS chunks_of ON chunks (document);
CREATE INDEX IF NOT EXISTS chunks_by_id ON chunks (id);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text);
