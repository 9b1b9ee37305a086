import { planTests } from "./plans.ts";

planTests({ rows: 200_000, statistics: "none" });
planTests({ rows: 200_000, statistics: "of the empty table" });
planTests({ rows: 200_000, statistics: "of a time when all rows were ours" });
