// What a definition may say, checked where it is made: later it would fail a job, or a worker.

import { createCategories } from "../domain/categories.ts";
import { checkFunction, checkOptions } from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import { checkFieldNames } from "../domain/payload-options.ts";
import { compareVersions, isVersion, type Upcasters } from "../domain/payload-version.ts";

const functions = ["delayMs", "orderingKey", "limitKey", "classify", "run"];
const rateFields = new Set(["limit", "windowMs", "key"]);

export function checkDefinition(given: object, known: ReadonlySet<string>): void {
  checkOptions("defineJob", given, known);
  const options = given as Readonly<Record<string, unknown>>;
  const { priority, retry, payload, payloadVersion, upcasters, rateLimit, waitForCommit } = options;
  for (const name of functions) checkFunction(name, options[name]);
  if (typeof priority !== "string" && typeof priority !== "function" && priority !== undefined)
    throw invalid("priority must be a label, or a function that finds one.");
  if (retry !== undefined && typeof retry !== "function" && !isObject(retry))
    throw invalid("retry must be a policy (a function), or { baseMs, capMs, jitter }.");
  if (payload !== undefined && !isSchema(payload))
    throw invalid("payload must be a Standard Schema, such as one of Zod, Valibot or ArkType.");
  if (payloadVersion !== undefined && !isVersion(payloadVersion))
    throw invalid("payloadVersion must be a version such as 1.0.");
  if (upcasters !== undefined && !isUpcasters(upcasters))
    throw invalid('upcasters must be like { "1.0": { to: "1.1", up: (payload) => … } }.');
  checkSteps(Object.entries(upcasters ?? {}), payloadVersion);
  if (waitForCommit !== undefined && typeof waitForCommit !== "boolean")
    throw invalid("waitForCommit must be true or false.");
  if (rateLimit !== undefined) checkRateLimit(rateLimit);
  checkCategory(options);
}

function checkSteps(steps: [string, { to: string }][], last: unknown): void {
  for (const [from, { to }] of steps) {
    if (!isVersion(from) || !isVersion(to) || compareVersions(from, to) >= 0)
      throw invalid(`The upcaster from ${from} to ${to} must lead to a newer version.`);
    if (isVersion(last) && compareVersions(to, last) > 0)
      throw invalid(`The upcaster from ${from} to ${to} leads beyond payloadVersion ${last}.`);
  }
}

function checkRateLimit(rateLimit: unknown): void {
  checkOptions("rateLimit", rateLimit, rateFields);
  if (!isObject(rateLimit) || typeof rateLimit.key !== "function")
    throw invalid("rateLimit.key must be a function.");
}

/** What a category of the caller's own lists is known to a Millrace only: that is checked when a job is enqueued. */
const builtIn = createCategories();

function checkCategory(options: Readonly<Record<string, unknown>>): void {
  const { type, category, additionalRequired } = options;
  if (category !== undefined && typeof category !== "string")
    throw invalid("category must be the name of one.");
  if (typeof type === "string") builtIn.ofJob(type, category);
  checkFieldNames(additionalRequired);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Some libraries' schemas are functions. */
function isSchema(value: unknown): boolean {
  if (!isObject(value) && typeof value !== "function") return false;
  const standard: unknown = (value as Record<string, unknown>)["~standard"];
  return isObject(standard) && typeof standard.validate === "function";
}

const isUpcasters = (value: unknown): value is Upcasters =>
  isObject(value) &&
  Object.values(value).every(
    (one) => isObject(one) && typeof one.to === "string" && typeof one.up === "function",
  );

const invalid = (message: string) => new MillraceError("OPTION_INVALID", message);
