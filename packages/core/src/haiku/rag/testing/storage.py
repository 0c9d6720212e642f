"""What a storage engine keeps.

Opening
1. What is not there is a `MissingDatabaseError`, for reading and for writing, and nothing comes to be by trying.
2. `CREATE` makes an empty database and records the identity; one that is there is opened as it is.
3. An empty database answers everything, with nothing.
4. A database opened for reading refuses every write with `ReadOnlyError`, and stays as it was.
5. A tag that does not exist is a `TagError`.
6. What was written is there when it is opened again, identity included.
7. Closing twice is safe, for a database and for the engine.
8. Databases of one engine do not see each other's documents.
9. A cancelled operation leaves the database usable.

Writing and reading
10. Writing returns the documents as stored, in order: random ids, times with a zone, the number of chunks.
11. A document is found by id, by URI and by exact title, with its content; what is not there is None.
12. A known URI or id is replaced whole and keeps its id and its creation; nothing of the old is left.
13. Documents without URI and id are each new.
14. Items come in order; pictures and page images by ref, and None where there is none.
15. Chunks come by id in the order asked, missing ones left out, with their document's fields and without vectors.
16. Deleting removes every part; False where there was nothing.
17. Updating changes what is given, also what filters and chunks see, and leaves the content; None for no document. A
    URI that another document has is a `DocumentConflictError`, and both stay as they were.
18. Listing is by creation, then id, in windows; content comes when it is asked for; counts agree.
19. Texts come back as they were, whatever is in them. Nothing to write, and documents without chunks, are fine.
20. Writers of one URI at once leave one document, with all its chunks from one of them.
21. `info` counts documents and chunks, and says the identity.

Filters
22. A structured filter selects by id, URI and title; a value is only ever a value. Letters match in their own case.
23. A missing field satisfies no comparison, and `Not` selects what its part does not.
24. Lists of 10,000 values work, and an empty one selects nothing.
25. The engine's own text form works, or any text is a `FilterError`.
26. Filtered search finds what the filter selects, however loud the rest is.

Searching
27. Candidates have the schema; ranks count from 1; scores never increase; no chunk comes twice.
28. A vector search is exact: its similarities are cosines within 1e-5, best first, whatever the vectors' lengths.
29. A text search finds words in any case, with positive scores and no similarity.
30. A hybrid search has both legs, each at most `depth` long, every row's similarity, and reciprocal rank for score.
31. Odd queries are no error; one without a letter or digit finds nothing by text.
32. Vectors come with the candidates when they are asked for.
33. Where the record says `searches_many`, one call for several databases gives what asking each gives.
"""

from haiku.rag.testing.storage_filters import FilterClauses
from haiku.rag.testing.storage_opening import OpeningClauses
from haiku.rag.testing.storage_search import SearchClauses
from haiku.rag.testing.storage_writing import WritingClauses


class StorageContract(OpeningClauses, WritingClauses, FilterClauses, SearchClauses):
    """Override `storage`; `make_ref` where a path below a temporary folder is no location for it.

    `text_filter` is a text filter that selects the title `alpha`, None where the engine takes structure only;
    `searches_many` as in the engine's record.
    """
