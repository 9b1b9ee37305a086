import { MillraceError } from "./errors.ts";

/** One address, or several of a list or separated by commas. Never says them: they may hold a password. */
export function redisUrls(value: string | readonly string[]): readonly string[] {
  const urls: readonly unknown[] = typeof value === "string" ? value.split(",") : listOf(value);
  if (urls.length === 0) throw invalid("A Redis URL is needed.");
  return urls.map((url) => {
    const text = typeof url === "string" ? url.trim() : "";
    if (isRedisUrl(text)) return text;
    throw invalid(
      "A Redis URL begins with redis:// or rediss://, as in redis://user:password@127.0.0.1:6379/0.",
    );
  });
}

function isRedisUrl(text: string): boolean {
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) return false;
  const { hostname, pathname, username, password } = new URL(text);
  if (hostname === "" || !/^\/?\d*$/.test(pathname)) return false;
  return [username, password].every(isDecodable);
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

const invalid = (message: string): MillraceError => new MillraceError("OPTION_INVALID", message);
