// Object.prototype of another realm (a test runner's, a vm's) counts as plain too.
export function isPlain(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return (
    Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, "isPrototypeOf")
  );
}
