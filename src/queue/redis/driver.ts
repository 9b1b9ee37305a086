// The three kinds of client of @redis/client behind one small face. The package is optional, so it is
// loaded when somebody asks for Redis, and no type of it leaves this folder.

import { MillraceError } from "../../domain/errors.ts";
import { type RedisTarget, topologyOf, urlsOf } from "./target.ts";

export interface Driver {
  connect(): Promise<unknown>;
  /** Sends a command to the server that has the key. */
  send(key: string, args: string[]): Promise<unknown>;
  /** The connection serves nothing else from then on. */
  subscribe(channel: string, listener: (message: string) => void): Promise<void>;
  onReady(listener: () => void): void;
  onError(listener: (error: unknown) => void): void;
  unref(): void;
  destroy(): void;
}

export interface DriverOptions extends RedisTarget {
  readonly connectTimeoutMs: number;
  /** Asked after every failed attempt: ms until the next one, or false to give up. */
  readonly reconnect: (attempts: number) => number | false;
}

type Library = typeof import("@redis/client");

export async function createDriver(options: DriverOptions): Promise<Driver> {
  const library = await loadLibrary();
  const create = { single, cluster, sentinel }[topologyOf(options)];
  return create(library, options);
}

async function loadLibrary(): Promise<Library> {
  try {
    return await import("@redis/client");
  } catch (cause) {
    throw new MillraceError("REDIS_CLIENT_MISSING", undefined, { cause });
  }
}

/** RESP 2 since Redis 5 speaks nothing else; no queue of the client's own, since ours knows when to give up. */
function clientOptions({ connectTimeoutMs, reconnect }: DriverOptions) {
  return {
    RESP: 2 as const,
    disableOfflineQueue: true,
    maintNotifications: "disabled" as const,
    socket: { connectTimeout: connectTimeoutMs, reconnectStrategy: reconnect },
  };
}

/** Deadlines are ours: the client's own ends with the sending, and would cut blocking commands short. */
const commandOptions = { timeout: 0 };

function single({ createClient }: Library, options: DriverOptions): Driver {
  const [url = ""] = urlsOf(options);
  const client = createClient({ ...clientOptions(options), url, commandOptions });
  return {
    connect: () => client.connect(),
    send: (_key, args) => client.sendCommand(args),
    subscribe: async (channel, listener) => void (await client.subscribe(channel, listener)),
    onReady: (listener) => void client.on("ready", listener),
    onError: (listener) => void client.on("error", listener),
    unref: () => client.unref(),
    destroy: () => client.destroy(),
  };
}

function cluster({ createCluster }: Library, options: DriverOptions): Driver {
  const urls = urlsOf(options);
  const client = createCluster({
    RESP: 2,
    rootNodes: urls.map((url) => ({ ...clientOptions(options), url })),
    defaults: { ...clientOptions(options), ...credentialsOf(urls), ...tlsOf(urls, options) },
    minimizeConnections: true, // all of a queue's keys lie in one slot
    commandOptions,
  });
  return {
    connect: () => client.connect(),
    send: (key, args) => client.sendCommand(key, false, args),
    subscribe: async (channel, listener) => void (await client.subscribe(channel, listener)),
    onReady: (listener) => void client.on("node-ready", listener),
    onError: (listener) => void client.on("error", listener).on("node-error", listener),
    unref: () => {
      for (const { client: node } of client.masters) node?.unref();
    },
    destroy: () => client.destroy(),
  };
}

function sentinel({ createSentinel }: Library, options: DriverOptions): Driver {
  const urls = urlsOf(options);
  const client = createSentinel({
    RESP: 2,
    name: options.sentinelMaster ?? "",
    sentinelRootNodes: urls.map((url) => {
      const { hostname, port } = new URL(url);
      return { host: hostname, port: Number(port) || 26379 };
    }),
    nodeClientOptions: {
      ...clientOptions(options),
      ...credentialsOf(urls),
      ...tlsOf(urls, options),
    },
    sentinelClientOptions: { ...clientOptions(options), ...tlsOf(urls, options) },
    passthroughClientErrorEvents: true,
    commandOptions,
  });
  return {
    connect: () => client.connect(),
    send: (_key, args) => client.sendCommand(false, args),
    subscribe: async (channel, listener) => void (await client.subscribe(channel, listener)),
    onReady: (listener) =>
      void client.on("ready", listener).on("topology-change", (event: { type: string }) => {
        if (event.type === "MASTER_CHANGE") listener();
      }),
    onError: (listener) => void client.on("error", listener),
    unref: () => {},
    destroy: () => void client.destroy().catch(() => {}),
  };
}

function credentialsOf([url = ""]: readonly string[]) {
  const { username, password } = new URL(url);
  return {
    ...(username === "" ? {} : { username: decodeURIComponent(username) }),
    ...(password === "" ? {} : { password: decodeURIComponent(password) }),
  };
}

function tlsOf([url = ""]: readonly string[], options: DriverOptions) {
  if (!url.startsWith("rediss:")) return {};
  return { socket: { ...clientOptions(options).socket, tls: true as const } };
}
