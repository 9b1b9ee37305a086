import { electInPostgres, electThroughRedis } from "../support/elections.ts";
import { electionConformance } from "./election.ts";

const soak = { minutes: 20, seed: 20_260 };
electionConformance("election in PostgreSQL", electInPostgres, soak);
electionConformance("election through Redis", electThroughRedis, soak);
