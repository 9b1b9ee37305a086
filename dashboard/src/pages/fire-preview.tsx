import { useMemo } from "react";
import { nextFireTimes } from "../../../src/client/http/fire-times.ts";
import { messageOf } from "../api/service.ts";
import { useNow } from "../parts/clock.ts";
import { distance } from "../parts/words.ts";

const count = 8;

/** In the trigger's own time zone, because its rule is. */
export function FirePreview({ cron, timeZone }: { cron: string; timeZone: string }) {
  const now = useNow();
  const minute = Math.floor(now / 60_000);
  const preview = useMemo(() => {
    try {
      const format = new Intl.DateTimeFormat("en-GB", {
        ...{ weekday: "short", year: "numeric", month: "short", day: "2-digit" },
        ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone },
      });
      const times = nextFireTimes(cron, timeZone, new Date(minute * 60_000), count);
      return { times: times.map((at) => ({ at, text: format.format(at) })), problem: null };
    } catch (error) {
      return { times: [], problem: messageOf(error) };
    }
  }, [cron, timeZone, minute]);
  if (preview.problem !== null) return <p className="warn">{preview.problem}</p>;
  return (
    <ol className="facts" aria-label="Next fire times">
      {preview.times
        .filter(({ at }) => at.getTime() > now)
        .map(({ at, text }) => (
          <li key={at.getTime()} className="fact">
            <span>{text}</span>
            <span className="soft">{distance(at.getTime(), now)}</span>
          </li>
        ))}
    </ol>
  );
}
