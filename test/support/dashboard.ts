// The built dashboard on a service of its own, and one browser. Every page is watched: an error that a
// page did not handle, a broken content security policy or a dialog of the browser fails its test.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, ConsoleMessage, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import type { Role } from "../../src/store/api-key.ts";
import { startBrowser } from "./chromium.ts";
import { adminKey, type CallOptions, send } from "./http.ts";
import { type Instances, useMillrace } from "./instance.ts";

export interface OpenOptions {
  readonly key?: string;
  readonly phone?: boolean;
  /** Without anything that an earlier page has left in the browser. */
  readonly isFresh?: boolean;
  /** Before the first request. */
  readonly prepare?: (context: BrowserContext) => Promise<unknown>;
}

export interface Dashboard extends Instances {
  readonly baseUrl: string;
  readonly server: HttpServer;
  key(role: Role, tenant?: string): Promise<string>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  call(method: string, path: string, options?: CallOptions): Promise<any>;
  /** A page of its own context, signed in with the admin key unless told. */
  open(path: string, options?: OpenOptions): Promise<Page>;
  /** The same, of nobody. */
  openUnknown(path: string): Promise<Page>;
}

const folder = join(import.meta.dirname, "..", "..", "dist", "dashboard");
const waitMs = 30_000;

export function useDashboard(): Dashboard {
  const instances = useMillrace();
  const problems: string[] = [];
  let server: HttpServer;
  let visits: Visits;

  beforeAll(async () => {
    if (!existsSync(join(folder, "index.html")))
      throw new Error("There is no dashboard in dist/: npm run build makes it.");
    const { millrace } = instances;
    const options = { millrace, port: 0, adminKey, dashboard: folder };
    server = new HttpServer(options);
    await server.start();
    visits = new Visits(await startBrowser(), server.url, problems);
    // A fresh machine has to install the browser first.
  }, 600_000);
  afterEach(async () => {
    await visits.endPages();
    expect(problems.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await visits?.close();
    await server?.stop();
  });

  const own = {
    get server() {
      return server;
    },
    get baseUrl() {
      return server.url;
    },
    async call(method: string, path: string, options?: CallOptions) {
      return (await send(server.url, method, path, options)).body;
    },
    async key(role: Role, tenant?: string) {
      const name = `${role} of ${tenant ?? "all"}`;
      const body = { name, role, ...(tenant === undefined ? {} : { tenant_id: tenant }) };
      return (await send(server.url, "POST", "/api/keys", { body })).body.key as string;
    },
    async open(path: string, options: OpenOptions = {}) {
      const page = await visits.page(options.key ?? adminKey, options);
      await page.goto(server.url + path);
      return page;
    },
    async openUnknown(path: string) {
      const page = await visits.page(null, { isFresh: true });
      await page.goto(server.url + path);
      return page;
    },
  };
  return Object.defineProperties(own, {
    ...Object.getOwnPropertyDescriptors(instances),
  }) as unknown as Dashboard;
}

/** Contexts are kept by who is signed in, with what the browser has cached; pages end with their test. */
class Visits {
  readonly #browser: Browser;
  readonly #url: string;
  readonly #problems: string[];
  readonly #kept = new Map<string, BrowserContext>();
  readonly #fresh: BrowserContext[] = [];

  constructor(browser: Browser, url: string, problems: string[]) {
    this.#browser = browser;
    this.#url = url;
    this.#problems = problems;
  }

  async page(key: string | null, options: OpenOptions): Promise<Page> {
    const about = `${key} ${options.phone === true}`;
    const isFresh = options.isFresh === true || options.prepare !== undefined;
    const known = isFresh ? undefined : this.#kept.get(about);
    const context = known ?? (await this.#newContext(options));
    if (known === undefined) {
      if (isFresh) this.#fresh.push(context);
      else this.#kept.set(about, context);
    }
    const page = await context.newPage();
    watch(page, this.#problems);
    if (known === undefined && key !== null) await signIn(page, this.#url, key);
    return page;
  }

  async #newContext({ phone, prepare }: OpenOptions): Promise<BrowserContext> {
    const context = await this.#browser.newContext({
      colorScheme: "light",
      reducedMotion: "reduce",
      viewport: phone ? { width: 390, height: 844 } : { width: 1280, height: 900 },
    });
    context.setDefaultTimeout(waitMs);
    await prepare?.(context);
    return context;
  }

  async endPages(): Promise<void> {
    for (const context of this.#fresh.splice(0)) await context.close();
    for (const context of this.#kept.values())
      for (const page of context.pages()) await page.close();
  }

  close(): Promise<void> {
    return this.#browser.close();
  }
}

/** As the sign-in page does it: from a page of our own, so that the browser says where it comes from. */
async function signIn(page: Page, url: string, key: string) {
  await page.goto(`${url}/theme.js`);
  const status = await page.evaluate(async (text) => {
    const answer = await fetch("/api/session", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key: text }),
    });
    return answer.status;
  }, key);
  expect(status).toBe(200);
}

function watch(page: Page, problems: string[]): void {
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss().catch(() => {});
  });
  page.on("console", (message: ConsoleMessage) => {
    const text = message.text();
    if (/content security policy/i.test(text)) problems.push(`policy: ${text}`);
    // A refusal that a test asks for is said by the browser, too; the page shows it.
    else if (message.type() === "error" && !/Failed to load resource/.test(text))
      problems.push(`console: ${text}`);
  });
}
