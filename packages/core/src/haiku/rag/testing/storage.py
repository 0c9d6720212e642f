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

What filters mean
34. The moments of a document compare as moments, in whatever zone one is given.
35. Texts are in the order of their code points.
36. A metadata value compares with values of its own kind only; a text that is an ISO date or moment with a moment too.
37. A metadata key is looked up whole, then part by part at its dots; a list does what one of its values does.
38. A filter that means nothing is a `FilterError`: an unknown field, a value that does not go with its field or
    operator, endless nesting. `haiku.rag.contracts.check_filter` says so of any.
39. Whatever a filter is made of, it selects what `haiku.rag.testing.selection` selects.

Together and broken off
40. A write that is cancelled at any moment leaves the document as it was, or has replaced it, whole.
41. Databases that are open several times write at once: nothing is lost, doubled or mixed.
42. `staleness_s` after a commit, a database that was opened before shows it, with every part.
43. A search meets no half document while another handle writes.

What texts find
44. Texts and queries meet after NFKC and case folding.
45. Where the suite says `finds_phrases`, what stands in quotation marks has to be there as it stands, and other words
    are optional; a mark without its partner, and marks round nothing to look up, count for nothing.
46. Where it says `finds_identifiers`, names as code has them are found whole, before what has their parts, and by them.

What the engine's record names
47. Every capability has its methods.
48. `upkeep`: vacuuming reports its steps and changes nothing that is read; a dry run plans only.
49. Indexes that are built again are what `info` says, and the best three of a search stay the same.
50. A database opened for reading refuses both with `ReadOnlyError`.
51. `checks`: a sound database has no failed finding, whether it is to be fixed or not, and stays as it is.
52. `history`: commits are listed newest first, with moments and a limit.
53. `tags`: a tag is listed by its name, also when the database is opened again; history shows it.
54. At a tag everything is as it was, and in whole documents, whatever was changed, deleted or vacuumed since.
55. What is open at a tag refuses writes with `ReadOnlyError`, and cannot be opened for writing (`TagError`).
56. A name that is taken, blank or holds a control character, and one that is not there, is a `TagError`.
57. Deleting a tag forgets the name, and leaves the database as it is.
58. Restoring brings everything back, for open readers too; the state before has a tag then, and restoring it undoes it.
59. A tag that is made while another handle writes names a state of whole documents.
60. Reading, at a tag and with `tags`, `history` and `check`, changes nothing on disk.
61. `migrations`: a current database has none pending, and migrating it does nothing; a missing one is a
    `MissingDatabaseError`, and stays so.
62. A database of an older schema (`make_outdated`) is refused with `MigrationRequiredError` and left as it is; it
    holds its documents once it is migrated.
63. A tag, a restore or a vacuum that is broken off leaves every document whole, and tags that are complete can be read.

Rebuilding, where `capabilities` names it
64. The parts of a document are what was written, with vectors and moments; None where there is none.
65. A document is rewritten by its id and keeps its URI and its creation; where it is not as it was seen, nothing is.
66. What a job writes down is there for whoever opens the database, until it is done.
67. What is staged is seen by nobody, keeps the moments it is given, and is gone on with unless the embedding is another
    or it is to be anew.
68. Adopting changes nothing while the documents differ, and then everything at once, for readers that are open too.
69. A writer that was open meanwhile is refused for the new embedding or writes to the new database; nothing is lost.
70. Shares of the attainable text score come only when they are asked for, and for all rows of the keyword leg or none:
    from 0 to 1, in the order of the scores, higher for a passage that has more of the query. A word that the database
    lacks lowers them.
"""

from haiku.rag.testing.storage_concurrency import ConcurrencyClauses
from haiku.rag.testing.storage_conditions import ConditionClauses
from haiku.rag.testing.storage_filters import FilterClauses
from haiku.rag.testing.storage_maintenance import MaintenanceClauses
from haiku.rag.testing.storage_opening import OpeningClauses
from haiku.rag.testing.storage_rebuild import RebuildClauses
from haiku.rag.testing.storage_search import SearchClauses
from haiku.rag.testing.storage_tags import TagClauses
from haiku.rag.testing.storage_text import TextClauses
from haiku.rag.testing.storage_writing import WritingClauses


class StorageContract(
    OpeningClauses,
    WritingClauses,
    FilterClauses,
    SearchClauses,
    ConditionClauses,
    ConcurrencyClauses,
    TextClauses,
    MaintenanceClauses,
    TagClauses,
    RebuildClauses,
):
    """Override `storage`; `make_ref` where a path below a temporary folder is no location for it.

    `text_filter` is a text filter that selects the title `alpha`, None where the engine takes structure only;
    `searches_many` and `capabilities` as in the engine's record; `finds_phrases` and `finds_identifiers` for engines
    that do; `staleness_s` where a commit is not seen at once; `make_outdated` once there has been another schema.
    """
