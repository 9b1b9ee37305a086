// Names of numbers that are no payment card's, though one in ten of them has the checksum of one: of orders,
// parcels, invoices. Any language has such names; those for cards are few, and stay cards.

import { isAscii, withoutAccents, wordsOf } from "./key-words.ts";

const set = (words: string) => new Set(words.split(" "));

/** Alone, these stand for their number. */
const things = set(
  "order invoice receipt shipment parcel package tracking delivery booking reservation ticket transaction " +
    "waybill consignment barcode ean gtin upc isbn imei iccid serial sku reading " +
    "bestellung auftrag rechnung sendung lieferung paket buchung quittung beleg " +
    "pedido factura envio albaran commande facture colis ordine fattura spedizione encomenda fatura " +
    "bestelling zending pakket factuur zamowienie faktura przesylka paczka " +
    "bestallning forsandelse ordre bestilling pakke tilaus lasku lahetys paketti siparis kargo gonderi " +
    "objednavka zasilka zasielka rendeles szamla csomag narudzba posiljka narocilo comanda colet",
);

/** What is numbered like this is no card. */
const numbered = set(
  "customer client member contract policy case article part product item batch lot meter document purchase " +
    "cliente contrato contrat contratto articulo articolo artigo producto produit prodotto produto " +
    "serie poliza police polizza reserva prenotazione recibo recu ricevuta seguimiento rastreo suivi " +
    "guia compra lote dossier container nhs klienta zamowienia faktury przesylki paczki umowy " +
    "kunde kund asiakas musteri objednavky zasilky zasielky zakaznika smlouvy zmluvy ugyfel szerzodes " +
    "narudzbe porudzbine posiljke racuna kupca ugovora narocila comenzii facturii coletului clientului",
);

const numberEndings = set(
  "number numbers n no nr num code numero numeros numer numarasi szam szama",
);
const numberBeginnings = set("numero numeros num numer no nr n cislo broj stevilka numar numarul");

const ofCards =
  /k[ao]+rt(?!on)|card|kredit|credit|carte|carta|cartao|tarjeta|visa|master|amex|pannumm?er/;

const isOne = (names: ReadonlySet<string>, word: string): boolean =>
  names.has(word) || (word.endsWith("s") && names.has(word.slice(0, -1)));

/** Are these words, in small letters and without accents, the name of a number that is no card's? */
export function numbersThings(words: readonly string[]): boolean {
  const last = words.at(-1) ?? "";
  if (isOne(things, last)) return true;
  const before = words.at(-2) ?? "";
  if (numberEndings.has(last) && (isOne(things, before) || isOne(numbered, before))) return true;
  if (compound.test(last)) return isCompound(words.join(""));
  if (oneWord.test(last)) return !ofCards.test(words.join(""));
  if (!isOne(numbered, last)) return false;
  return numberBeginnings.has(before) || numberBeginnings.has(words.at(-3) ?? "");
}

/** Such as Bestellnummer, kundenummer, factuurnummer, Kundennr. */
const compound = /(?:nummern?|nr)$/;
const isCompound = (name: string): boolean =>
  !/^(?:nummern?|nr)$/.test(name) && !ofCards.test(name);

/** Tilausnumero, rendelésszám; in two words `numero` is a number of anything. */
const oneWord = /[a-z]{3}(?:numero|szam)$/;

const foreignNumber = /.番号$|[^番][号號]$|.번호$|номер.|.номер/;
const foreignThing =
  /(?:注文|订单|訂單|주문|заказ[ауе]?|посылк[аи]|παραγγελ[ίι]ας?|τιμολ[όο]γιο|τιμολογ[ίι]ου)$/;
const foreignCard = /カード|卡|카드|карт|κ[άα]ρτ/;

export function numbersForeignThings(key: string): boolean {
  const name = key.normalize("NFKC").toLowerCase();
  return (foreignNumber.test(name) || foreignThing.test(name)) && !foreignCard.test(name);
}

/** Does a text say that the number behind it is no card's? */
export function announcesThing(before: string): boolean {
  const words = /(\p{L}+(?:[ _-]\p{L}+){0,2})[ .:：#=№°º]{0,4}$/u.exec(before)?.[1];
  if (words === undefined) return false;
  return numbersThings(wordsOf(words)) || (!isAscii(words) && numbersForeignThings(words));
}

/** Does a text say that it is about a card? */
export const namesCard = (text: string): boolean =>
  ofCards.test(withoutAccents(text).toLowerCase());
