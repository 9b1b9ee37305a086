import { ratiosOf } from "./ratios.mjs";

const number = (value, digits) =>
  value === null || value === undefined
    ? "–"
    : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

function ratioTable(rows) {
  const ratios = ratiosOf(rows);
  if (ratios.length === 0) return "";
  const lines = ratios.map(
    ({ what, ratio, limit, atMost, met }) =>
      `| ${what} | ${number(ratio, 2)} | ${atMost ? "at most" : "at least"} ${limit} | ${met ? "yes" : "**no**"} |`,
  );
  return `## Ratios\n\n| What | Ratio | Wanted | Met |\n| --- | --- | --- | --- |\n${lines.join("\n")}\n\n`;
}

function scenarioTable(scenario, rows) {
  const idle = scenario === "pickup_idle";
  const head = idle
    ? "| System | Configuration | p50 ms | p99 ms | Rounds |\n| --- | --- | ---: | ---: | ---: |"
    : "| System | Configuration | jobs/s | node CPU | server CPU | Rounds |\n| --- | --- | ---: | ---: | ---: | ---: |";
  const lines = rows.map((row) => {
    const values = idle
      ? [number(row.pickup_p50_ms, 2), number(row.pickup_p99_ms, 2)]
      : [
          number(row.jobs_per_second, 0),
          number(row.node_cpu_s_per_100k, 2),
          number(row.server_cpu_s_per_100k, 2),
        ];
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
