// Ports for servers of tests. Below those that the system gives to whoever connects: a server that is started again
// on its port must not find somebody's connection there. Each process begins elsewhere, and none is given twice, since
// two servers that are given the same port in the same moment would be taken for each other.

import { once } from "node:events";
import { createServer } from "node:net";

const lowest = 10_000;
/** A Redis Cluster's nodes talk to each other on a port 10,000 above, which is nobody's either. */
const count = 10_000;
const apart = 97;
let next = process.pid * apart;

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < count; tries++) {
    const port = lowest + (next++ % count);
    if (await isFree(port)) return port;
  }
  throw new Error(`None of the ports from ${lowest} to ${lowest + count - 1} is free.`);
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  try {
    const listening = once(probe, "listening");
    probe.listen(port, "127.0.0.1");
    await listening;
  } catch {
    return false;
  }
  probe.close();
  await once(probe, "close");
  return true;
}
