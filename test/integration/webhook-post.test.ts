// Rule 19 of what must be tested for security: where a delivery can lead, and what may come back.

import { once } from "node:events";
import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWebhookRules, type WebhookOptions } from "../../src/domain/webhook-url.ts";
import { type PostOptions, postWebhook } from "../../src/manager/webhook-post.ts";
import { createCertificate } from "../support/certificate.ts";
import { Receiver } from "../support/receiver.ts";

const loopback = { allowInsecureLoopback: true };
let receiver: Receiver;
/** Whatever reaches the receiver, signed or not. */
const reached = () => receiver.received.length + receiver.refused.length;

beforeEach(async () => {
  receiver = await Receiver.start();
});
afterEach(() => receiver.close());

interface Attempt extends Partial<Omit<PostOptions, "rules">> {
  readonly rules?: WebhookOptions;
  readonly signal?: AbortSignal;
}

const post = (url: string, { rules = loopback, signal, ...options }: Attempt = {}) =>
  postWebhook(
    { url, headers: {}, body: "{}", signal: signal ?? new AbortController().signal },
    { rules: createWebhookRules(rules), timeoutMs: 20_000, ...options },
  );

const answers = (...addresses: string[]) => {
  const asked: string[] = [];
  const resolve = async (hostname: string) => {
    asked.push(hostname);
    return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  return { asked, resolve };
};

describe("security 19: a private or link-local address is refused when connecting", () => {
  it.each(["10.0.0.1", "169.254.169.254", "192.168.0.1", "::ffff:10.0.0.1", "fe80::1", "0.0.0.0"])(
    "when a name leads to %s",
    async (address) => {
      const result = await post("https://rebound.example/", answers(address));
      expect(result).toEqual({ kind: "failed", reason: "address_refused" });
    },
  );

  it("when a name leads to loopback, and nothing reaches whoever listens there", async () => {
    const url = `https://rebound.example:${receiver.port}/`;
    const rules = { allowedPorts: [receiver.port] };
    const result = await post(url, { rules, ...answers("127.0.0.1") });
    expect(result).toEqual({ kind: "failed", reason: "address_refused" });
    expect(reached()).toBe(0);
  });

  it("when one of several addresses is bad", async () => {
    const result = await post("https://half.example/", answers("8.8.8.8", "10.0.0.1"));
    expect(result).toEqual({ kind: "failed", reason: "address_refused" });
  });

  it("when the URL was stored under other rules", async () => {
    const strict = { allowInsecureLoopback: false };
    expect(await post(receiver.url, { rules: strict })).toEqual({
      kind: "failed",
      reason: "url_refused",
    });
    expect(reached()).toBe(0);
  });

  it("and plain HTTP leads to loopback only, whatever the name says", async () => {
    const result = await post("http://public.example/", answers("8.8.8.8"));
    expect(result).toEqual({ kind: "failed", reason: "address_refused" });
  });
});

describe("security 19: DNS rebinding is closed", () => {
  it("because the name is resolved once and the socket connects to what was judged", async () => {
    let asked = 0;
    const resolve = async () => {
      asked++;
      return [{ address: asked === 1 ? "127.0.0.1" : "10.0.0.1", family: 4 }];
    };
    // No DNS knows this name: only the judged address can have led to the receiver.
    const url = `http://rebinding.invalid:${receiver.port}/`;
    await post(url, { resolve });
    expect(reached()).toBe(1);
    expect(asked).toBe(1);
    expect(await post(url, { resolve })).toEqual({ kind: "failed", reason: "address_refused" });
    expect(reached()).toBe(1);
  });
});

describe("security 19: no redirect is followed", () => {
  it.each([301, 302, 303, 307, 308])("not a %i", async (code) => {
    const other = await Receiver.start();
    const answer = await redirected(code, other.url);
    expect(answer).toMatchObject({ kind: "answered", status: code });
    expect(other.received.length + other.refused.length).toBe(0);
    await other.close();
  });

  async function redirected(code: number, location: string) {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", () =>
        socket.write(
          `HTTP/1.1 ${code} Moved\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`,
        ),
      );
    });
    return raw(server, (url) => post(url));
  }
});

describe("security 19: size and time are capped", () => {
  it("an answer that never ends is not read", async () => {
    const chunk = "x".repeat(64 * 1024);
    let written = 0;
    let closed: Promise<unknown> = Promise.resolve();
    const server = createServer((socket) => {
      closed = new Promise((resolve) => socket.on("close", resolve));
      socket.on("error", () => {});
      const flood = () => {
        while (!socket.destroyed && socket.write(chunk)) written += chunk.length;
      };
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\n");
        socket.on("drain", flood);
        flood();
      });
    });
    const result = await raw(server, async (url) => {
      const answer = await post(url);
      await closed;
      return answer;
    });
    expect(result).toMatchObject({ kind: "answered", status: 200 });
    expect(written).toBeLessThan(64 * 1024 * 1024);
  });

  it("a head that is too large is a failure", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () =>
        socket.write(`HTTP/1.1 200 OK\r\nx-large: ${"x".repeat(20_000)}\r\n\r\n`),
      );
    });
    expect(await raw(server, (url) => post(url))).toEqual({
      kind: "failed",
      reason: "unreachable",
    });
  });

  it("a receiver that never answers is given up", async () => {
    const server = createServer((socket) => socket.on("error", () => {}));
    const result = await raw(server, (url) => post(url, { timeoutMs: 100 }));
    expect(result).toEqual({ kind: "failed", reason: "timeout" });
  });

  it("so is a name that nobody resolves", async () => {
    const resolve = () => new Promise<never>(() => {});
    const result = await post("https://slow.example/", { resolve, timeoutMs: 100 });
    expect(result).toEqual({ kind: "failed", reason: "timeout" });
  });

  it("and a worker that stops does not wait for it", async () => {
    const stopping = new AbortController();
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => stopping.abort(new Error("stopping")));
    });
    const given = raw(server, (url) => post(url, { signal: stopping.signal }));
    await expect(given).rejects.toThrow("stopping");
  });

  it("a receiver that hangs up, or upgrades to something else, is a failure", async () => {
    const upgrade = createServer((socket) => {
      socket.on("error", () => {});
      const head = "HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
      socket.once("data", () => socket.write(head));
    });
    for (const result of [
      await raw(
        createServer((socket) => socket.destroy()),
        (url) => post(url),
      ),
      await raw(upgrade, (url) => post(url)),
    ])
      expect(result).toEqual({ kind: "failed", reason: "unreachable" });
  });
});

describe("security 19: HTTPS", () => {
  it("refuses a certificate that nobody vouches for", async () => {
    const secure = await Receiver.start(createCertificate());
    expect(await post(secure.url)).toEqual({ kind: "failed", reason: "tls" });
    expect(secure.received.length + secure.refused.length).toBe(0);
    await secure.close();
  });
});

async function raw<T>(
  server: ReturnType<typeof createServer>,
  body: (url: string) => Promise<T>,
): Promise<T> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port was given");
  try {
    return await body(`http://127.0.0.1:${address.port}/`);
  } finally {
    server.close();
  }
}
