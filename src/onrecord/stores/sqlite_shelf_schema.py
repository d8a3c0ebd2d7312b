"""The tables of a shelf's file.

```
kept   (n, tenant, owner, session, memory, key, kind, at, body)  unique(tenant, owner, session, memory, key)
sources(n, tenant, session)                                      which sessions' words a thing is made of
people (n, person)                                               whose words, where it is not the owner's
vectors(n, model, body)                                          what some of them mean, to which embedder
words  (terms)                                                   full text; holds no text of its own, only an index
```

The index is fed the words of `onrecord.memory.terms`, so that a search finds the same here as in memory, in scripts
without spaces too; each behind the digest of its space, so that a search reads no other space's, and takes as long as
its own is large. In a sealed file it is empty.
"""

from __future__ import annotations

from onrecord.stores.sqlite_own_file import OwnFile

__all__ = ("SHELF_FILE", "SHELF_ID")

SHELF_ID = 0x6F6E726D
"""Marks a SQLite file as a shelf of this library: ``onrm`` in ASCII."""

_SCHEMA = (
    """create table kept(
        n integer primary key autoincrement, tenant text not null, owner text not null, session text not null,
        memory text not null, key text not null, kind text not null, at integer not null, body blob not null,
        unique(tenant, owner, session, memory, key))""",
    "create index kept_of on kept(tenant, owner, session, memory, kind, n)",
    "create index kept_by on kept(owner) where owner<>''",
    "create index kept_at on kept(memory, at)",
    """create table sources(
        n integer not null, tenant text not null, session text not null, primary key(n, session)) without rowid""",
    "create index sources_of on sources(tenant, session)",
    "create table people(n integer not null, person text not null, primary key(n, person)) without rowid",
    "create index people_of on people(person)",
    "create table vectors(n integer primary key, model text not null, body blob not null)",
    "create table secrets(secret blob not null)",
    """create virtual table words using fts5(terms, content='',
        tokenize="unicode61 remove_diacritics 0 categories 'L* N* Co M*'")""",
)

SHELF_FILE = OwnFile(what="memories", instead="PlainShelf()", id=SHELF_ID, version=1, schema=_SCHEMA)
