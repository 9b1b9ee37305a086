// What the affiliates say, and what the platforms have in their books.

/** More than one click in five impressions is not how people read pages. */
const suspiciousRate = 0.2;

export function priorityOf({ clicks, impressions }) {
  return clicks / impressions > suspiciousRate ? "high" : "normal";
}

export function createReports() {
  return Array.from({ length: 24 }, (_, i) => ({
    report_id: `r${String(i + 1).padStart(2, "0")}`,
    platform: i % 2 === 0 ? "clickhub" : "payfeed",
    impressions: 1_000,
    clicks: i % 7 === 6 ? 410 : 12 + i,
    conversions: 3 + (i % 4),
  }));
}

/** r05 and r16 come late, r09 is overstated, and nobody has heard of r20's account. */
export function createBooks(reports) {
  const books = new Map();
  for (const { report_id, conversions } of reports) {
    if (report_id === "r20") continue;
    const missingFor = report_id === "r05" || report_id === "r16" ? 2 : 0;
    const truth = report_id === "r09" ? conversions - 2 : conversions;
    books.set(report_id, { conversions: truth, missingFor });
  }
  return books;
}
