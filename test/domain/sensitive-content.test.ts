import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findSensitive } from "../../src/domain/sensitive-content.ts";
import { harmless } from "./harmless-cases.ts";
import {
  embedded,
  planted,
  secretsByKey,
  secretsByLine,
  secretsByShape,
} from "./sensitive-cases.ts";
import { jwt } from "./sensitive-samples.ts";

describe("findSensitive", () => {
  test("the tables are as large as promised", () => {
    expect(secretsByKey.length + secretsByShape.length + embedded.length).toBeGreaterThanOrEqual(
      45,
    );
    expect(harmless.length).toBeGreaterThanOrEqual(70);
  });

  test.each(secretsByKey)("finds by key: %s", (_, payload, path) => {
    expect(findSensitive(payload)).toMatchObject([{ path, rule: "sensitive_key" }]);
  });

  test.each([...secretsByShape, ...secretsByLine])("finds by shape: %s", (_, value, kind) => {
    const finding = { kind, rule: "sensitive_value" };
    expect(findSensitive({ note: value })).toEqual([{ path: "$.note", ...finding }]);
    expect(findSensitive([value])).toEqual([{ path: "$[0]", ...finding }]);
  });

  test.each(embedded)("finds embedded content: %s", (_, payload, kind) => {
    expect(findSensitive(payload)).toMatchObject([{ kind, rule: "embedded_content" }]);
  });

  test.each(harmless)("leaves alone: %s", (_, payload) => {
    expect(findSensitive(payload)).toEqual([]);
  });

  test("finds a card number that is a number", () => {
    expect(findSensitive({ n: 4111111111111111 })).toMatchObject([{ kind: "card_number" }]);
  });

  test.each([
    ...["kartennummer", "kreditkartennummer", "Karten-Nummer", "numero_tarjeta", "numéro_de_carte"],
    ...["kaartnummer", "kortnummer", "numero_cartao", "カード番号", "信用卡号", "номер_карты"],
    ...["nummer", "numero", "番号", "payment_number", "numero_pagamento", "pago_numero"],
    ...["korttinumero", "kártyaszám", "číslo_karty", "broj_kartice", "numar_card", "kart_no"],
    ...["αριθμός_κάρτας", "kart_numarası", "注文カード"],
  ])("finds a card number under %s", (key) => {
    for (const value of ["4000056655665556", 4000056655665556])
      expect(findSensitive({ [key]: value })).toMatchObject([{ kind: "card_number" }]);
  });

  test.each([
    ...["passord", "nytt_passord", "adgangskode", "salasana", "heslo", "jelszó", "şifre", "sifre"],
    ...["parola", "db_parola", "비밀번호", "كلمة المرور", "كلمة_المرور", "סיסמה"],
    ...["κωδικός_πρόσβασης", "ΚΩΔΙΚΟΣ ΠΡΟΣΒΑΣΗΣ", "geslo", "lozinka"],
  ])("finds a password under %s", (key) => {
    expect(findSensitive({ [key]: "hunter2-x" })).toMatchObject([{ kind: "password" }]);
  });

  test.each(["kortnummer", "card n°", "carte n°", "Facture carte n°", "карта №", "Karte Nr."])(
    "finds a card number behind %s",
    (before) => {
      const payload = { note: `${before} 4012888888881881` };
      expect(findSensitive(payload)).toMatchObject([{ kind: "card_number" }]);
    },
  );

  test("finds a card number that is called one under the name of an order", () => {
    const payload = { invoice: "paid with card 4000 0566 5566 5556" };
    expect(findSensitive(payload)).toMatchObject([{ kind: "card_number" }]);
  });

  test("finds every secret of a payload", () => {
    const payload = { a: { token: "hunter2-x" }, b: [jwt], email_body: "Hi Bob" };
    const paths = findSensitive(payload).map((finding) => finding.path);
    expect(paths).toEqual(["$.a.token", "$.b[0]", "$.email_body"]);
  });

  test("never repeats a value", () => {
    const payloads = [
      ...secretsByKey.map(([, payload]) => payload),
      ...secretsByShape.map(([, value]) => ({ [value]: { [`x ${value}`]: value } })),
      ...secretsByLine.map(([, value]) => ({ [value]: value })),
      ...embedded.map(([, payload]) => payload),
    ];
    const text = JSON.stringify(payloads.map(findSensitive));
    for (const value of planted) expect(text).not.toContain(value);
    for (const [, value] of secretsByShape) expect(text).not.toContain(value.slice(-12));
  });

  test("finds a secret that is used as a key, and does not show it", () => {
    expect(findSensitive({ users: { [jwt]: true } })).toEqual([
      { path: "$.users[masked]", kind: "jwt", rule: "sensitive_value" },
    ]);
  });

  test("does not show an overlong key", () => {
    const payload = { ["k".repeat(65)]: { token: "hunter2-x" } };
    expect(findSensitive(payload)).toMatchObject([{ path: "$[masked].token" }]);
  });

  test("quotes a key that is no plain name and neutralises its control characters", () => {
    const payload = { "a b\n\u009b": { token: "hunter2-x" } };
    expect(findSensitive(payload)).toMatchObject([{ path: '$["a b\\n?"].token' }]);
  });

  test("a secret is found wherever it stands", () => {
    const anywhere = fc.tuple(
      fc.array(fc.constantFrom("a", "items", "x y"), { maxLength: 20 }),
      fc.constantFrom(...secretsByShape.map(([, value]) => value)),
    );
    fc.assert(
      fc.property(anywhere, ([keys, value]) => {
        const payload = keys.reduce<unknown>((inner, key) => ({ [key]: [inner] }), value);
        expect(findSensitive(payload)).toHaveLength(1);
      }),
    );
  });

  test("random identifiers and numbers are no secrets", () => {
    const id = fc.oneof(fc.uuid(), fc.ulid(), fc.integer(), fc.date().map(String));
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom("job_id", "at", "ref", "n"), id), (payload) => {
        expect(findSensitive(payload)).toEqual([]);
      }),
    );
  });

  test("every string is judged without an exception", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
        findSensitive({ [text]: text });
      }),
    );
  });
});
