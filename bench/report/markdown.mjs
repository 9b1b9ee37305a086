import { ratiosOf } from "./ratios.mjs";

const number = (value, digits) =>
  value === null || value === undefined
    ? "–"
    : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

const answers = { true: "yes", false: "**no**" };

const columns = [
  { key: "jobs_per_second", title: "jobs/s", digits: 0 },
  { key: "pickup_p50_ms", title: "p50 ms", digits: 2 },
  { key: "pickup_p99_ms", title: "p99 ms", digits: 2 },
  { key: "enqueue_p50_ms", title: "enqueue p50 ms", digits: 2 },
  { key: "enqueue_p99_ms", title: "enqueue p99 ms", digits: 2 },
  { key: "enqueue_max_ms", title: "longest ms", digits: 2 },
  { key: "node_cpu_s_per_100k", title: "node CPU", digits: 2 },
  { key: "server_cpu_s_per_100k", title: "server CPU", digits: 2 },
  { key: "redis_cpu_s_per_100k", title: "Redis CPU", digits: 2 },
];

function ratioTable(rows) {
  const ratios = ratiosOf(rows);
  if (ratios.length === 0) return "";
  const lines = ratios.map(
    ({ what, ratio, unit, wanted, met }) =>
      `| ${what} | ${number(ratio, 2)}${unit ?? ""} | ${wanted} | ${answers[met] ?? "–"} |`,
  );
  return `## Ratios\n\n| What | Ratio | Wanted | Met |\n| --- | --- | --- | --- |\n${lines.join("\n")}\n\n`;
}

function scenarioTable(scenario, rows) {
  const measured = columns.filter(({ key }) => rows.some((row) => (row[key] ?? null) !== null));
  const titles = measured.map(({ title }) => title);
  const head = `| ${["System", "Configuration", ...titles, "Rounds"].join(" | ")} |
| --- | --- | ${[...titles, ""].map(() => "---:").join(" | ")} |`;
  const lines = rows.map((row) => {
    const values = measured.map(({ key, digits }) => number(row[key], digits));
    const note = row.failure ? ` (failed: ${row.failure.replaceAll("|", "/")})` : "";
    return `| ${[row.system, row.config + note, ...values, row.rounds].join(" | ")} |`;
  });
  return `## \`${scenario}\`\n\n${head}\n${lines.join("\n")}\n`;
}

export function markdownOf(rows, about) {
  const servers = Object.entries(about.servers).map(([name, version]) => `${name} ${version}`);
  const packages = Object.entries(about.packages).map(([name, version]) => `${name} ${version}`);
  const scenarios = [...new Set(rows.map((row) => row.scenario))];
  const tables = scenarios.map((scenario) =>
    scenarioTable(
      scenario,
      rows.filter((row) => row.scenario === scenario),
    ),
  );
  return `# Millrace beside its peers

${about.date.slice(0, 10)}, ${about.processors} processors, Node ${about.node}, ${servers.join(", ")}, ${packages.join(", ")}.
Medians over the rounds, systems interleaved; scale ${about.scale}. CPU is seconds per 100,000 jobs. Trust ratios and
CPU, not absolute rates: they are this machine's.

${ratioTable(rows)}${tables.join("\n")}`;
}
