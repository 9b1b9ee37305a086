// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en-GB", { notation: "compact", maximumFractionDigits: 1 });

export const number = (value: number): string => whole.format(value);

export const short = (value: number): string =>
  value >= 100_000 ? compact.format(value) : whole.format(value);

export const rate = (perMinute: number): string =>
  perMinute === 0 || perMinute >= 10 ? short(Math.round(perMinute)) : fine.format(perMinute);

/** A number and its unit stay together. */
export const duration = (ms: number): string => durationWords(ms).replaceAll(" ", "\u00a0");

function durationWords(ms: number): string {
  if (ms < 1) return ms <= 0 ? "0 ms" : "< 1 ms";
  if (ms < 1_000) return `${whole.format(ms)} ms`;
  if (ms < 60_000) return `${fine.format(ms / 1_000)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${whole.format(hours / 24)} days`;
}

/** One unit only, for figures: "6 min". */
export function brief(ms: number): string {
  if (ms < 60_000) return duration(ms);
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.floor(ms / 3_600_000)} h`;
  return `${Math.floor(ms / 86_400_000)} days`;
}

/** One unit only: "3 min ago", "in 2 h". */
export function distance(to: number, now: number): string {
  const ms = Math.abs(to - now);
  const units = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1_000, "s"],
  ] as const;
  const [size, name] = units.find(([least]) => ms >= least) ?? [1_000, "s"];
  const text = `${Math.floor(ms / size)} ${name}`;
  if (ms < 1_000) return "now";
  return to > now ? `in ${text}` : `${text} ago`;
}

const stamp = new Intl.DateTimeFormat("en-GB", {
  ...{ year: "numeric", month: "short", day: "2-digit" },
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit" },
});

export const moment = (at: string | Date): string => stamp.format(new Date(at));

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`;
