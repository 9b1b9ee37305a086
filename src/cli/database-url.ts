/** For people's eyes: where the database is, not how to get in. */
export function withoutPassword(url: string): string {
  const shown = new URL(url);
  shown.password = "";
  return shown.href;
}
