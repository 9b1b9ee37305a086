// One table: what was measured, what stands beside it, and whether the target is met.
const number = (value, digits = 0) =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

const lines = {
  bulk: ({ ours, beside }) => [
    "enqueue in bulk of 100 over HTTP, jobs/s; beside: in the service's process",
    ...[number(ours), number(beside), number(ours / beside, 2), "at least 0.7 of it"],
  ],
  single: ({ ours, beside, wanted }) => [
    "single enqueues at 100 connections, /s; beside: a bare Fastify route doing one INSERT",
    ...[number(ours), number(beside), number(ours / beside, 2), `at least ${number(wanted)}/s`],
  ],
  long_poll: ({ ours, beside }) => [
    "an item reaches a waiting robot, ms after the add has its answer, p50; beside: the add, p50 ms",
    ...[number(ours, 2), number(beside, 2), "–", "under 10"],
  ],
  waiting: ({ ours }) => [
    "looks for items per second while 1,000 robots wait",
    ...[number(ours, 2), "–", "–", "at most 1"],
  ],
};

export function tableOf(rows, about) {
  const body = rows.map(
    (row) => `| ${[...lines[row.part](row), row.met ? "yes" : "**no**"].join(" | ")} |`,
  );
  return `# The HTTP service

${about.date.slice(0, 10)}, ${about.processors} processors, Node ${about.node}, PostgreSQL ${about.postgres}.
Medians over ${about.rounds} rounds of ${about.seconds} s, in turns; 8 bulk requests in flight, over HTTP and without;
the load comes from a process of its own.

| What | Millrace | Beside | Ratio | Wanted | Met |
| --- | ---: | ---: | ---: | --- | --- |
${body.join("\n")}
`;
}
