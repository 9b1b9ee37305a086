// The dashboard's files, all of them in memory: what is not in the map cannot be asked for, whatever the
// path says. Compressed once, at the start.

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { MillraceError } from "../domain/errors.ts";

type Encoding = "br" | "gzip" | "identity";

interface StaticFile {
  readonly type: string;
  readonly isImmutable: boolean;
  readonly hash: string;
  readonly bodies: Readonly<Partial<Record<Encoding, Buffer>>>;
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".webmanifest": "application/manifest+json; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".webp": "image/webp",
  ".woff2": "font/woff2",
};

/** Nothing inline, nothing from elsewhere, in nobody's frame. */
const policy = [
  "default-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "object-src 'none'",
].join("; ");

const mostBytes = 64 * 1024 * 1024;
const worthCompressing = 1_024;
const compressible = /^(?:text\/|application\/|image\/svg)/;
const hashedName = /^\/assets\/.*-[\w-]{8,}\.\w+$/;
/** Paths of the service itself: a typing error there is told as such, and not with a page. */
const reserved = /^\/(?:api|assets|metrics|healthz|readyz)(?:\/|$)/;

export class StaticFiles {
  readonly #files: ReadonlyMap<string, StaticFile>;
  readonly #index: StaticFile;

  private constructor(files: ReadonlyMap<string, StaticFile>, index: StaticFile) {
    this.#files = files;
    this.#index = index;
  }

  static async read(folder: string): Promise<StaticFiles> {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
      (cause: unknown) => {
        throw new MillraceError("OPTION_INVALID", `${folder} cannot be read.`, { cause });
      },
    );
    const files = new Map<string, StaticFile>();
    let left = mostBytes;
    for (const entry of entries) {
      if (!entry.isFile() || entry.name.startsWith(".")) continue;
      const file = join(entry.parentPath, entry.name);
      const bytes = await readFile(file);
      left -= bytes.length;
      if (left < 0)
        throw new MillraceError("OPTION_INVALID", `${folder} is too large to be a dashboard.`);
      const path = `/${relative(folder, file).split(sep).join("/")}`;
      files.set(path, await prepare(path, bytes));
    }
    const index = files.get("/index.html");
    if (index === undefined)
      throw new MillraceError("OPTION_INVALID", `There is no index.html in ${folder}.`);
    return new StaticFiles(files, index);
  }

  /** Answers, if the request is for one of the files or for a page of the application. */
  answer(request: FastifyRequest, reply: FastifyReply): FastifyReply | null {
    const file = this.#find(request);
    if (file === null) return null;
    const encoding = chooseEncoding(file, request.headers["accept-encoding"]);
    const etag = `"${file.hash}-${encoding}"`;
    reply.headers({
      "content-security-policy": policy,
      "cache-control": file.isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
      vary: "accept-encoding",
      etag,
    });
    if (isKnown(request.headers["if-none-match"], etag)) return reply.code(304).send();
    if (encoding !== "identity") reply.header("content-encoding", encoding);
    return reply.type(file.type).send(file.bodies[encoding]);
  }

  #find({ method, url, headers }: FastifyRequest): StaticFile | null {
    if (method !== "GET" && method !== "HEAD") return null;
    const [path = "/"] = url.split("?");
    const file = this.#files.get(path === "/" ? "/index.html" : path);
    if (file !== undefined) return file;
    const isPage = !reserved.test(path) && (headers.accept ?? "").includes("text/html");
    return isPage ? this.#index : null;
  }
}

async function prepare(path: string, bytes: Buffer): Promise<StaticFile> {
  const type = types[extname(path)] ?? "application/octet-stream";
  return {
    type,
    isImmutable: hashedName.test(path),
    hash: createHash("sha256").update(bytes).digest("base64url").slice(0, 22),
    bodies:
      bytes.length >= worthCompressing && compressible.test(type)
        ? { identity: bytes, ...(await compress(bytes)) }
        : { identity: bytes },
  };
}

async function compress(bytes: Buffer): Promise<{ br: Buffer; gzip: Buffer }> {
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 6,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  };
  const [br, gzipped] = await Promise.all([
    promisify(brotliCompress)(bytes, { params }),
    promisify(gzip)(bytes, { level: 9 }),
  ]);
  return { br, gzip: gzipped };
}

/** The best of what is there and welcome; `q=0` is a refusal. */
function chooseEncoding({ bodies }: StaticFile, accepted: string | string[] = ""): Encoding {
  const welcome = String(accepted)
    .split(",")
    .filter((one) => !/;\s*q=0(?:\.0*)?\s*$/.test(one))
    .map((one) => one.split(";")[0]?.trim());
  const found = (["br", "gzip"] as const).find(
    (encoding) => bodies[encoding] !== undefined && welcome.includes(encoding),
  );
  return found ?? "identity";
}

const isKnown = (header: string | undefined, etag: string): boolean =>
  header
    ?.split(",")
    .map((one) => one.trim().replace(/^W\//, ""))
    .includes(etag) ?? false;
