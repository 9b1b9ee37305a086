// The soak at full length, in simulated time. ELECTION_SEED varies it.

import { electionConformance } from "../conformance/election.ts";
import { electInPostgres, electThroughRedis } from "../support/elections.ts";

const soak = { minutes: 120, seed: Number(process.env.ELECTION_SEED ?? 20_260) };
electionConformance("election in PostgreSQL", electInPostgres, soak);
electionConformance("election through Redis", electThroughRedis, soak);
