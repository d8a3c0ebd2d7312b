"""The stand-in's sentences in English, Portuguese and Spanish, and the few words it understands by rote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from onrecord.providers.offline.overlap import fold, sentences, words

__all__ = (
    "HONEST",
    "OPEN_WORDS",
    "Language",
    "is_courtesy",
    "is_farewell",
    "is_greeting",
    "is_no",
    "is_question",
    "is_thanks",
    "is_yes",
    "language_of",
    "phrase",
    "told_language",
    "words_of",
)

Language = Literal["en", "pt", "es"]

HONEST = (
    "This is a rule-based stand-in, not a language model: it matches words, fills in tool arguments by pattern and "
    "quotes its brief, so that the machinery around a model can be seen working."
)

PHRASES: Mapping[str, tuple[str, str, str]] = {
    "hello": ("Hello!", "Olá!", "¡Hola!"),
    "welcome": ("You are welcome.", "De nada.", "De nada."),
    "bye": ("Goodbye!", "Até logo!", "¡Hasta luego!"),
    "can": ("I can help with:", "Posso ajudar com:", "Puedo ayudar con:"),
    "cannot": (
        "I am a rule-based stand-in without tools here: I can only quote my brief.",
        "Sou um substituto baseado em regras, sem ferramentas aqui: só posso citar as minhas instruções.",
        "Soy un sustituto basado en reglas, sin herramientas aquí: solo puedo citar mis instrucciones.",
    ),
    "lost": (
        "I am a rule-based stand-in and found no rule for that.",
        "Sou um substituto baseado em regras e não achei regra para isso.",
        "Soy un sustituto basado en reglas y no encontré ninguna regla para eso.",
    ),
    "ask": (
        "For {tool} I still need: {what}. What is it?",
        "Para {tool} ainda preciso de: {what}. Qual é?",
        "Para {tool} todavía necesito: {what}. ¿Cuál es?",
    ),
    "confirm": (
        "I am about to run {call}. This cannot be undone. Shall I go ahead?",
        "Vou executar {call}. Isto não pode ser desfeito. Posso continuar?",
        "Voy a ejecutar {call}. Esto no se puede deshacer. ¿Sigo adelante?",
    ),
    "declined": (
        "All right, I did not run {tool}.",
        "Certo, não executei {tool}.",
        "De acuerdo, no ejecuté {tool}.",
    ),
    "nothing": (
        "There is nothing open that I could do with that.",
        "Não há nada em aberto que eu possa fazer com isso.",
        "No hay nada pendiente que pueda hacer con eso.",
    ),
    "from": ("From {call}:", "De {call}:", "De {call}:"),
    "failed": ("{call} did not work: {why}.", "{call} não funcionou: {why}.", "{call} no funcionó: {why}."),
    "denied": ("{call} was not allowed: {why}.", "{call} não foi permitido: {why}.", "{call} no se permitió: {why}."),
    "unknown": (
        "It is not known whether {call} took effect.",
        "Não se sabe se {call} teve efeito.",
        "No se sabe si {call} tuvo efecto.",
    ),
    "done": ("done", "feito", "hecho"),
    "empty": ("nothing came back", "não veio nada", "no llegó nada"),
    "partial": ("(partly)", "(em parte)", "(en parte)"),
    "more": ("and {n} more", "e mais {n}", "y {n} más"),
    "yes": ("yes", "sim", "sí"),
    "no": ("no", "não", "no"),
    "brief": ("My brief says:", "As minhas instruções dizem:", "Mis instrucciones dicen:"),
    "earlier": ("Earlier, {call} gave", "Antes, {call} deu", "Antes, {call} dio"),
    "more_please": (
        "What can I do for you?",
        "Em que posso ajudar?",
        "¿En qué puedo ayudar?",
    ),
    "noted": ("Noted: {what}.", "Anotado: {what}.", "Anotado: {what}."),
    "agreed": ("All right.", "Certo.", "De acuerdo."),
    "differently": (
        "All right, not like that. What should be different?",
        "Certo, assim não. O que devo mudar?",
        "De acuerdo, así no. ¿Qué debo cambiar?",
    ),
    "is_that_right": ("Is that right?", "Está certo?", "¿Está bien así?"),
    "tell_me": ("Please tell me {what}.", "Diga-me, por favor, {what}.", "Dígame, por favor, {what}."),
    "tell_whether": (
        "Please tell me {what}: yes or no?",
        "Diga-me, por favor, {what}: sim ou não?",
        "Dígame, por favor, {what}: ¿sí o no?",
    ),
    "yes_or_no": ("“{what}”: yes or no?", "“{what}”: sim ou não?", "“{what}”: ¿sí o no?"),
    "quoted": (
        "I still need “{what}”. What is it?",
        "Ainda preciso de “{what}”. Qual é?",
        "Todavía necesito “{what}”. ¿Cuál es?",
    ),
    "thank_you": ("Thank you!", "Obrigado!", "¡Gracias!"),
    "sorry": ("I am sorry about that.", "Lamento por isso.", "Lo siento."),
    "again": ("Hello again!", "Olá de novo!", "¡Hola de nuevo!"),
    "go_on": ("Shall we go on?", "Vamos continuar?", "¿Seguimos?"),
    "last_word": (
        "This is my last message for now: write whenever you like.",
        "Esta é a minha última mensagem por agora: escreva quando quiser.",
        "Este es mi último mensaje por ahora: escriba cuando quiera.",
    ),
}  # fmt: skip

TELLING: Mapping[Language, frozenset[str]] = {
    "en": frozenset(
        """the is are i you what how for and of please want would can my do does it to with actually night nights room
        two three name city bye thanks""".split()
    ),
    "pt": frozenset(
        """o os uma um em para quero voce qual quanto obrigado obrigada sim nao e com meu minha ola quais onde por
        favor gostaria das dos oi na verdade ao mais isso quarto noite noites duas tres nome cidade chamo
        sou tchau""".split()
    ),
    "es": frozenset(
        """el los las una un en para quiero usted cual cuanto gracias si y con mi hola donde por favor quisiera del
        cuesta hay la realidad habitacion noche noches dos tres nombre ciudad llamo soy
        adios""".split()
    ),
}

YES = frozenset(
    """yes yeah yep yup sure ok okay confirm confirmed confirmo agreed absolutely definitely correct sim claro
isso pode certo si dale vale adelante oui 好 好的 是 是的 はい""".split()
)
YES_PHRASES = ("go ahead", "do it", "please do", "of course", "por supuesto", "pode sim", "com certeza", "sounds good")
NO = frozenset("no nope nah cancel stop never nao nunca cancela cancelar nein non 不 いいえ".split())
NO_PHRASES = ("never mind", "do not", "don't", "dont", "better not", "not now", "melhor nao", "mejor no", "no thanks")
DOUBT = frozenset("not no nao but wait mas pero espera dont never nunca unless if se hold except instead".split())
GREETINGS = frozenset("hi hello hey hola ola oi buenas greetings 你好 こんにちは".split())
GREETING_PHRASES = ("good morning", "good afternoon", "good evening", "bom dia", "boa tarde", "boa noite",
                    "buenos dias", "buenas tardes", "buenas noches")  # fmt: skip
THANKS = frozenset("thanks thank thx cheers obrigado obrigada gracias merci danke valeu".split())
FAREWELLS = frozenset("bye goodbye ciao tchau adios adeus farewell".split())
FAREWELL_PHRASES = ("see you", "ate logo", "ate mais", "hasta luego", "hasta pronto", "good night", "take care")
WANTS = frozenset(
    """please now can could would want need quero queria pode poderia quiero puede podria quisiera book
another how what when where which quanto quando qual onde cuanto cuando cual donde""".split()
)

OPEN_WORDS = frozenset(
    """what whats when where which who whose why how
    quanto quanta quantos quantas qual quais quando onde como quem cuanto cuanta cuantos cuantas cual cuales cuando
    donde quien que""".split()
)
"""Words of a question that no yes or no answers."""
ASKING = (OPEN_WORDS - {"que"}) | frozenset("can could do does did is are".split())


def phrase(name: str, language: Language, **values: object) -> str:
    """A sentence in a language with its values filled in."""
    text = PHRASES[name][get_args(Language).index(language)]
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", str(value))
    return text


def language_of(texts: Iterable[str]) -> Language:
    """The language whose small words the latest texts use most, newest first; English where that is not clear."""
    return next((told for text in texts if (told := told_language(text)) is not None), "en")


def told_language(text: str) -> Language | None:
    """The language whose small words a text uses most; None where that is not clear, as in the one letter of a yes."""
    spoken = [word.folded for word in words(text)]
    if len("".join(spoken)) < 2:
        return None
    counts = {name: sum(word in held for word in spoken) for name, held in TELLING.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] > 0 and list(counts.values()).count(counts[best]) == 1 else None


def is_yes(text: str) -> bool:
    """A clear yes: it begins with one, doubts nothing and asks nothing."""
    spoken = words_of(text)
    if not spoken or "?" in text or set(spoken) & DOUBT:
        return False
    return bool(set(spoken[:2]) & YES) or _says(spoken, YES_PHRASES)


def is_no(text: str) -> bool:
    """A no, at the start or in one of its usual forms."""
    spoken = words_of(text)
    return bool(spoken) and (spoken[0] in NO or _says(spoken, NO_PHRASES))


def is_question(text: str) -> bool:
    """A text that asks something: it has a question mark, or a sentence of it begins with a question word."""
    if "?" in text or "？" in text:  # noqa: RUF001 - characters that people really type
        return True
    return any((spoken := words_of(one)) and spoken[0] in ASKING for one in sentences(text))


def is_courtesy(text: str) -> bool:
    """A text that only greets, thanks or takes leave."""
    held = sentences(text)
    return bool(held) and all(is_greeting(s) or is_thanks(s) or is_farewell(s) for s in held)


def is_greeting(sentence: str) -> bool:
    """A sentence that only greets."""
    spoken = words_of(sentence)
    return bool(spoken) and len(spoken) <= 4 and (spoken[0] in GREETINGS or _says(spoken[:3], GREETING_PHRASES))


def is_thanks(sentence: str) -> bool:
    """A sentence that thanks and wants nothing more."""
    return _polite(sentence, THANKS, ())


def is_farewell(sentence: str) -> bool:
    """A sentence that takes leave and wants nothing more."""
    return _polite(sentence, FAREWELLS, FAREWELL_PHRASES)


def _polite(sentence: str, held: frozenset[str], phrases: tuple[str, ...]) -> bool:
    spoken = words_of(sentence)
    if "?" in sentence or len(spoken) > 12 or set(spoken) & WANTS:
        return False
    return bool(set(spoken) & held) or _says(spoken, phrases)


def words_of(text: str) -> list[str]:
    """The folded words of a text."""
    return [word.folded for sentence in sentences(text) for word in words(sentence)]


def _says(spoken: list[str], phrases: Iterable[str]) -> bool:
    said = f" {' '.join(spoken)} "
    return any(f" {fold(one)} " in said for one in phrases)
