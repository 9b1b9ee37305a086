const redacted = /^(?:[*•]+|[[<(](?:redacted|masked|filtered|removed|hidden)[\])>])$/i;
/** All but the first or last few digits of a number are blanked out. */
const blankedNumber =
  /^(?:[A-Z]{2}(?:\d\d)?|\d{4,6})?[ -]?[*•]{2,}(?:[ -][*•]{2,}){0,5}[ -]?\d{0,4}$/;
const pointer =
  /^(?:\$\{[\w.:-]{1,100}\}|\{\{[ \w.:-]{1,100}\}\}|(?:vault|env|op|secret):[\w./:#-]{1,200}|arn:aws:(?:secretsmanager|ssm):[\w./:-]{1,200})$/;

/** A value that stands under a secret's name but only points at it, or was blanked out. */
export function isStandIn(value: string): boolean {
  if (value.length > 256) return false;
  return redacted.test(value) || blankedNumber.test(value) || pointer.test(value);
}
