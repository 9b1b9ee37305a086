import { MillraceError } from "../../domain/errors.ts";
import * as contract from "../contract/cluster.ts";
import { type Served, serve } from "../served.ts";

const workers = serve(contract.listWorkers, async ({ identity }, { store }) => {
  if (identity.tenant !== null)
    throw new MillraceError(
      "TENANT_FORBIDDEN",
      "Workers serve all tenants; this takes a key without a tenant.",
    );
  const found = await store.workers();
  return {
    status: 200 as const,
    body: {
      workers: found.map(({ leaseId, name, state, startedAt, renewedAt, info, running }) => ({
        ...{ lease_id: leaseId, name, state, info: info ?? null, running: { ...running } },
        started_at: startedAt.toISOString(),
        renewed_at: renewedAt.toISOString(),
      })),
    },
  };
});

const cluster = serve(contract.readCluster, async (_, { store, millrace }) => {
  const { term, holder, electedAt, inOffice } = await store.leadership();
  const { dispatch, config } = millrace;
  const redis = dispatch === "brokered" ? ("ok" as const) : ("unreachable" as const);
  return {
    status: 200 as const,
    body: {
      leader: { in_office: inOffice, term, holder, elected_at: electedAt?.toISOString() ?? null },
      dispatch,
      redis: config.redis.use ? redis : ("unused" as const),
      postgres: {
        status: "ok" as const,
        version: store.serverVersion,
        row_security: (await store.service.isSecured()) ? ("on" as const) : ("off" as const),
      },
    },
  };
});

export const clusterRoutes: readonly Served[] = [workers, cluster];
