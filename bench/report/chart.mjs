// Bars for the four scenarios that say most, as an SVG of its own: no fonts, scripts or links from outside.
const colours = {
  millrace: "#0f766e",
  raw: "#94a3b8",
  "bullmq-redis": "#c2410c",
  "bullmq-postgres": "#d97706",
  "graphile-worker": "#4f46e5",
  "pg-boss": "#9333ea",
};

const panels = [
  {
    scenario: "end_to_end_single",
    title: "End to end, one by one",
    key: "jobs_per_second",
    unit: "jobs/s",
  },
  {
    scenario: "end_to_end_bulk",
    title: "End to end, in bulk",
    key: "jobs_per_second",
    unit: "jobs/s",
  },
  { scenario: "enqueue", title: "Enqueue only", key: "jobs_per_second", unit: "jobs/s" },
  { scenario: "drain", title: "Drain only", key: "jobs_per_second", unit: "jobs/s" },
  {
    scenario: "pickup_idle",
    title: "Pickup on an idle queue, p50",
    key: "pickup_p50_ms",
    unit: "ms",
    less: true,
  },
];

const size = { width: 960, margin: 28, label: 430, row: 24, head: 64, title: 38 };
const escaped = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const shown = (value, unit) =>
  `${unit === "ms" ? value.toFixed(2) : Math.round(value).toLocaleString("en")} ${unit}`;

function bar(row, key, unit, longest, y) {
  const room = size.width - size.margin * 2 - size.label - 100;
  const x = size.margin + size.label;
  const length = Math.max(2, (row[key] / longest) * room);
  const config = row.config.length > 52 ? `${row.config.slice(0, 51)}…` : row.config;
  const weight = row.system === "millrace" ? ' font-weight="600"' : "";
  return `<text x="${size.margin}" y="${y + 15}"${weight}>${row.system}</text>
<text x="${size.margin + 110}" y="${y + 15}" class="quiet">${escaped(config)}</text>
<rect x="${x}" y="${y + 4}" width="${length.toFixed(1)}" height="15" rx="2" fill="${colours[row.system]}"/>
<text x="${(x + length + 6).toFixed(1)}" y="${y + 15}"${weight}>${shown(row[key], unit)}</text>`;
}

function panelOf({ scenario, title, key, unit, less }, rows, top) {
  const bars = rows
    .filter((row) => row.scenario === scenario && row[key] !== null)
    .sort((a, b) => (less ? a[key] - b[key] : b[key] - a[key]));
  if (bars.length === 0) return { height: 0, svg: "" };
  const longest = Math.max(...bars.map((row) => row[key]));
  const lines = bars.map((row, index) =>
    bar(row, key, unit, longest, top + size.title + index * size.row),
  );
  const note = less ? "less is better" : "more is better";
  const heading = `<text x="${size.margin}" y="${top + 26}" class="title">${title} <tspan class="quiet">(${note})</tspan></text>`;
  return { height: size.title + bars.length * size.row + 14, svg: [heading, ...lines].join("\n") };
}

export function chartOf(rows, about) {
  let top = size.head;
  const parts = [];
  for (const panel of panels) {
    const { height, svg } = panelOf(panel, rows, top);
    parts.push(svg);
    top += height;
  }
  const height = top + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${height}" viewBox="0 0 ${size.width} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="#1e293b" role="img" aria-label="Millrace beside its peers">
<style>.title{font-size:15px;font-weight:600}.quiet{fill:#64748b;font-size:11px;font-weight:400}</style>
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="${size.margin}" y="32" font-size="19" font-weight="600">Millrace beside its peers</text>
<text x="${size.margin}" y="50" class="quiet">${about.date.slice(0, 10)}, ${about.processors} processors, medians of ${about.rounds} round${about.rounds > 1 ? "s" : ""}, synchronous_commit on</text>
${parts.filter(Boolean).join("\n")}
</svg>
`;
}
