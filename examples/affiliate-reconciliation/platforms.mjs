// Two affiliate platforms as they are in life: one drops connections and then breaks down for a while,
// one allows few calls at a time, and both know some reports only later than you would like.
import { NonRetryableError, RateLimitedError, RetryableError } from "millrace/queue";

/** Every third call is cut off; from the tenth on all of them are, until somebody repairs it. */
export function createClickHub(books) {
  let isRepaired = false;
  const clickhub = {
    calls: 0,
    repair: () => {
      isRepaired = true;
    },
    async confirmed(report) {
      clickhub.calls++;
      if (!isRepaired && (clickhub.calls >= 10 || clickhub.calls % 3 === 0)) {
        throw Object.assign(new Error("clickhub hung up"), { code: "ECONNRESET" });
      }
      return look("clickhub", books, report);
    },
  };
  return clickhub;
}

/** Five calls in 250 ms; whoever asks more often is told when to come back. */
export function createPayFeed(books) {
  const windowMs = 250;
  let calls = [];
  return {
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
