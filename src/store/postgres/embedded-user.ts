// PostgreSQL refuses to run as root. As root the server therefore runs under an unprivileged
// account of this machine; a cluster that exists already runs under the account that owns it.

import { readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { MillraceError } from "../../domain/errors.ts";

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

const accounts = ["postgres", "nobody", "daemon"];

/** The account to run the server under, or undefined for our own. */
export async function chooseServerUser(cluster: string): Promise<ServerUser | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  const owner = await stat(cluster).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const passwd = await readFile("/etc/passwd", "utf8").catch(() => "");
  const lines = passwd.split("\n").map((line) => line.split(":"));
  for (const name of accounts) {
    const line = lines.find((fields) => fields[0] === name);
    const uid = Number(line?.[2]);
    const gid = Number(line?.[3]);
    if (uid > 0 && gid > 0) return { uid, gid };
  }
  throw new MillraceError(
    "EMBEDDED_UNAVAILABLE",
    `PostgreSQL does not run as root, and none of the accounts ${accounts.join(", ")} exists here. ` +
      "Start Millrace as a normal user, or set DATABASE_URL.",
  );
}

/** Whether the account may enter the folder. Reads permission bits only: "no" may be too strict. */
export async function canEnter(folder: string, user: ServerUser): Promise<boolean> {
  const { mode, uid, gid } = await stat(folder);
  const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
  if ((mode & bit) === 0) return false;
  const parent = dirname(folder);
  return parent === folder || canEnter(parent, user);
}
