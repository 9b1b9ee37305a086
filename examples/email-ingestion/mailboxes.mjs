// A mail provider with four mailboxes, each with a trouble of its own. A real one answers with a status;
// what that means for a job is said here, in one place.
import { NonRetryableError, RateLimitedError } from "millrace";

export function createProvider() {
  const calls = new Map();
  const revoked = new Set(["conn_revoked", "conn_left"]);
  return {
    grant: (connection) => revoked.delete(connection),
    /** Ids of new messages; the messages themselves stay with the provider. */
    async newMessages(connection) {
      const call = (calls.get(connection) ?? 0) + 1;
      calls.set(connection, call);
      if (connection === "conn_flaky" && call === 1)
        throw Object.assign(new Error("the connection was reset"), { code: "ECONNRESET" });
      if (connection === "conn_busy" && call === 1)
        throw new RateLimitedError("429: slow down", { retryAfterMs: 200 });
      if (revoked.has(connection))
        throw new NonRetryableError("401: the mailbox's owner withdrew the permission");
      return [1, 2].map((n) => `${connection.replace("conn", "msg")}_${n}`);
    },
  };
}
