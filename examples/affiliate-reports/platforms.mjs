// Two affiliate platforms as they are in life: one drops connections, one allows few calls at a time,
// and both know some reports only later than you would like.
import { NonRetryableError, RateLimitedError, RetryableError } from "millrace/queue";

/** Every third call is cut off. */
export function createClickHub(books) {
  let calls = 0;
  return {
    name: "clickhub",
    async confirmed(report) {
      if (++calls % 3 === 0) {
        throw Object.assign(new Error("clickhub hung up"), { code: "ECONNRESET" });
      }
      return look("clickhub", books, report);
    },
  };
}

/** Five calls in 250 ms; whoever asks more often is told when to come back. */
export function createPayFeed(books) {
  const windowMs = 250;
  let calls = [];
  return {
    name: "payfeed",
    async confirmed(report) {
      const now = Date.now();
      calls = calls.filter((at) => now - at < windowMs);
      if (calls.length >= 5) {
        const retryAfterMs = calls[0] + windowMs - now;
        throw new RateLimitedError("payfeed: too many requests", { retryAfterMs });
      }
      calls.push(now);
      return look("payfeed", books, report);
    },
  };
}

function look(platform, books, report) {
  const entry = books.get(report.report_id);
  if (entry === undefined) {
    throw new NonRetryableError(`${platform} knows no account for ${report.report_id}`);
  }
  if (entry.missingFor > 0) {
    entry.missingFor--;
    const message = `${platform} has no data for ${report.report_id} yet`;
    throw new RetryableError(message, { retryAfterMs: 300 });
  }
  return entry.conversions;
}
