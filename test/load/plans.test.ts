import { planTests } from "../conformance/plans.ts";

planTests({ rows: 1_000_000, statistics: "none" });
planTests({ rows: 1_000_000, statistics: "of the empty table" });
planTests({ rows: 1_000_000, statistics: "of a time when all rows were ours" });
