"""Words as the stand-in compares them: folded, lightly stemmed, a few everyday words made one across languages.

Works by spelling alone. Scripts without spaces are compared by pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

__all__ = ("NUMBER_WORDS", "STOP_WORDS", "Word", "fold", "likeness", "root", "roots", "sentences", "words")

WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")  # noqa: RUF001 - the typographic apostrophe is meant
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SENTENCE = re.compile(r"[^.!?…。！？\n]+(?:\.(?=\S)[^.!?…。！？\n]+)*[.!?…。！？]*")  # noqa: RUF001 - characters that people really type
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")

STOP_WORDS = frozenset(
    """
a about also am an and any are as at be been but by can could did do does for from get give had has have hello her hey
hi his how i if in is it its just let like me my need no not of ok okay on one or our please shall should so some
tell thank thanks that the their them then there these they this to too us very want was we were what when where which
who why will with would yes yeah you your yours im ill id ive its thats whats lets dont sure now here am
o os as um uma uns umas de do da dos das em no na nos nas por para com sem sob e ou mas que se eu tu voce voces ele ela
nos eles elas meu minha meus minhas seu sua seus suas isso isto aquilo este esta esse essa ao aos nao sim ja por favor
quero queria gostaria preciso pode poderia qual quais quando onde como quem ola oi obrigado obrigada tem ter ha foi
ser estar estou e muito la ali aqui ate pra pro
el los las un unos unas del al en y con sin pero yo usted ustedes ella nosotros mi mis su sus eso esto ese esa es son
si quiero quisiera necesito puede podria cual cuales cuando donde quien hola gracias tiene tener hay fue estoy muy lo
le les se te porfavor
""".split()
)

# Each line is one thing under its everyday names; the first is its root. A hand-made list, not understanding.
SAME = """
price prices cost costs much rate rates fee charge charged expensive cheap preco precos custo custa custam quanto valor
price precio precios cuanto cuesta cuestan costo tarifa tarifas
book booking reserve reservation reserves reservar reserva reserve reservas reservacion agendar
cancel cancellation cancelar cancela cancelamento cancelacion
room rooms quarto quartos habitacion habitaciones cuarto
night nights noite noites noche noches
day days dia dias
guest guests hospede hospedes huesped huespedes
city cities town cidade cidades ciudad ciudades
country countries pais paises
name names nome nomes nombre nombres
weather forecast clima previsao pronostico
search find look lookup buscar busca procurar procura encontrar
send sends enviar envia mandar manda
order orders pedido pedidos encomenda orden ordenes
buy purchase comprar compra
status state estado situacao
account accounts conta contas cuenta cuentas
balance saldo
time hour hours hora horas horario
date dates data datas fecha fechas
help ajuda ajudar ayuda ayudar
open opens aberto abre abierto
breakfast desayuno
code codes codigo codigos
person people pessoa pessoas persona personas
message messages mensagem mensagens mensaje mensajes
talk speak chat falar hablar conversar
refund reembolso devolucao devolucion
delete remove apagar excluir borrar eliminar
""".strip().splitlines()

NUMBER_WORDS = {
    word: value
    for value, line in enumerate(
        """zero cero
one um uma uno una
two dois duas dos
three tres
four quatro cuatro
five cinco
six seis
seven sete siete
eight oito ocho
nine nove nueve
ten dez diez
eleven onze once
twelve doze doce""".splitlines()
    )
    for word in line.split()
}

SUFFIXES = ("ations", "ation", "mente", "cion", "coes", "cao", "ings", "ing", "ando", "endo", "ed", "ly")


class Word:
    """One word of a text: as written, folded, and where it stands."""

    __slots__ = ("folded", "start", "stop", "text")

    def __init__(self, text: str, start: int) -> None:
        self.text, self.start, self.stop = text, start, start + len(text)
        self.folded = fold(text).replace("'", "").replace("’", "")  # noqa: RUF001 - characters that people really type


def fold(text: str) -> str:
    """Lower case without accents."""
    if text.isascii():
        return text.casefold()
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) != "Mn")
    return unicodedata.normalize("NFC", bare).casefold()


def words(text: str) -> list[Word]:
    """The words of a text in order."""
    return [Word(found.group(), found.start()) for found in WORD.finditer(text)]


def sentences(text: str) -> list[str]:
    """The sentences of a text with their closing marks; a line break ends one, a dot inside a number does not."""
    return [found.group().strip() for found in SENTENCE.finditer(text) if found.group().strip()]


def _stem(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    return word[:-1] if len(word) > 4 and word[-1] in "aeo" else word


def _same() -> dict[str, str]:
    known: dict[str, str] = {}
    for line in SAME:
        first, *_ = line.split()
        for word in line.split():
            known.setdefault(_stem(word), _stem(first))
    return known


_ROOTS = _same()


@lru_cache(maxsize=4096)
def root(word: str) -> str:
    """What a folded word is compared by."""
    stem = _stem(word)
    return _ROOTS.get(stem, stem)


def roots(text: str) -> list[str]:
    """The roots of the words that say something, in order; identifiers are split (``get_price``, ``getPrice``)."""
    found: list[str] = []
    for word in WORD.findall(CAMEL.sub(" ", text)):
        folded = Word(word, 0).folded
        if UNSPACED.search(folded):
            found.extend(folded[i : i + 2] for i in range(max(len(folded) - 1, 1)))
            continue
        pieces = [folded] if folded in STOP_WORDS else folded.split("-")
        found.extend(root(piece) for piece in pieces if piece and piece not in STOP_WORDS)
    return found


def likeness(one: str, many: Iterable[str]) -> float:
    """How much a root resembles the nearest of others: 1 for the same, up to 0.7 for a close spelling, else 0."""
    best = 0.0
    for other in many:
        if one == other:
            return 1.0
        best = max(best, _spelled_alike(one, other))
    return best


def _spelled_alike(one: str, other: str) -> float:
    if min(len(one), len(other)) < 4:
        return 0.0
    if one[:5] == other[:5] and min(len(one), len(other)) >= 5:
        return 0.7
    mine, theirs = _pairs(one), _pairs(other)
    shared = 2 * len(mine & theirs) / (len(mine) + len(theirs))
    return 0.6 if shared >= 0.75 else 0.0


@lru_cache(maxsize=4096)
def _pairs(word: str) -> frozenset[str]:
    return frozenset({word[i : i + 2] for i in range(len(word) - 1)})
