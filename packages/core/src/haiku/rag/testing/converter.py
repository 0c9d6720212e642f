# ruff: noqa: D102 - a test's name is its documentation
"""What a converter keeps.

1. Items have refs of their own, not blank, and labels.
2. The sample's texts are in the items, in their order, and in `content`.
3. A heading has a level from 1; a page counts from 1.
4. A picture belongs to an item, by its ref; page images are numbered from 1.
5. The same bytes give the same document.
6. Bytes that it cannot read are a `ConversionError` whose text names the file, and nothing else.
"""

from collections.abc import Sequence

import pytest

from haiku.rag.contracts.conversion import Converter, SourceContent
from haiku.rag.errors import ConversionError


class ConverterContract:
    """Override `converter`, `sample`, `texts`, and `unreadable` where some bytes cannot be read."""

    @pytest.fixture
    def converter(self) -> Converter:
        """The converter under test."""
        raise NotImplementedError("override the fixture 'converter'")  # pragma: no cover - a subclass overrides it

    @pytest.fixture
    def sample(self) -> SourceContent:
        """A document that it reads."""
        raise NotImplementedError("override the fixture 'sample'")  # pragma: no cover - a subclass overrides it

    @pytest.fixture
    def texts(self) -> Sequence[str]:
        """Passages of the sample, in reading order."""
        raise NotImplementedError("override the fixture 'texts'")  # pragma: no cover - a subclass overrides it

    @pytest.fixture
    def unreadable(self) -> SourceContent | None:
        """Bytes of the right name or type that it cannot read; None where there are no such bytes."""
        return None  # pragma: no cover - only for what reads any bytes

    def test_1_items_have_refs_of_their_own(self, converter: Converter, sample: SourceContent) -> None:
        items = converter.convert(sample).items
        refs = [item.ref for item in items]
        assert items
        assert len(set(refs)) == len(refs)
        assert all(ref.strip() for ref in refs)
        assert all(item.label for item in items)

    def test_2_texts_are_kept_in_their_order(
        self, converter: Converter, sample: SourceContent, texts: Sequence[str]
    ) -> None:
        parsed = converter.convert(sample)
        for whole in ("\n".join(item.text for item in parsed.items), parsed.content):
            places = [whole.find(text) for text in texts]
            assert -1 not in places
            assert places == sorted(places)

    def test_3_levels_and_pages_count_from_1(self, converter: Converter, sample: SourceContent) -> None:
        for item in converter.convert(sample).items:
            assert item.page is None or item.page >= 1
            if item.label == "heading":
                assert item.level is not None
                assert item.level >= 1

    def test_4_pictures_belong_to_items(self, converter: Converter, sample: SourceContent) -> None:
        parsed = converter.convert(sample)
        assert set(parsed.pictures) <= {item.ref for item in parsed.items}
        assert all(number >= 1 for number in parsed.page_images)

    def test_5_the_same_bytes_give_the_same_document(self, converter: Converter, sample: SourceContent) -> None:
        assert converter.convert(sample) == converter.convert(sample)

    def test_6_what_cannot_be_read_is_a_conversion_error(
        self, converter: Converter, unreadable: SourceContent | None
    ) -> None:
        if unreadable is None:
            pytest.skip("it reads any bytes")  # pragma: no cover - only for what reads any bytes
        with pytest.raises(ConversionError) as caught:
            converter.convert(unreadable)
        assert unreadable.name in str(caught.value)
