"""What the package registers."""

from haiku.rag.storage.lancedb.plugin import haiku_rag_register_config_section, haiku_rag_register_storage


def test_the_storage_record_says_what_it_opens():
    (record,) = haiku_rag_register_storage()
    assert (record.name, record.sections, record.suffixes, record.standalone) == (
        "lancedb",
        ("lancedb",),
        (".lancedb",),
        True,
    )
    assert record.schemes == ("s3", "gs", "az", "db")
    assert record.default_location == "haiku.rag.lancedb"


def test_the_section_record_names_its_secrets():
    (record,) = haiku_rag_register_config_section()
    assert (record.name, record.secrets) == ("lancedb", ("api_key", "storage_options"))
