import { MillraceError } from "../../domain/errors.ts";
import type { Breaker } from "../../store/breaker.ts";
import * as contract from "../contract/breakers.ts";
import type { Identity } from "../identity.ts";
import { type Served, serve } from "../served.ts";
import { breakerView } from "../views.ts";

/** What a platform does concerns everybody: neither its errors nor its switches are one tenant's. */
function ofAllTenants({ tenant }: Identity): void {
  if (tenant !== null)
    throw new MillraceError(
      "TENANT_FORBIDDEN",
      "Tenants share the breakers; this takes a key without a tenant.",
    );
}

const answer = (breaker: Breaker) => ({ status: 200 as const, body: breakerView(breaker) });

export const breakerRoutes: readonly Served[] = [
  serve(contract.listBreakers, async ({ identity }, { millrace }) => {
    ofAllTenants(identity);
    const breakers = await millrace.breakers.list();
    return { status: 200 as const, body: { breakers: breakers.map(breakerView) } };
  }),
  serve(contract.readBreaker, async ({ params, identity }, { millrace }) => {
    ofAllTenants(identity);
    const breaker = await millrace.breakers.get(params.name);
    if (breaker === null) throw new MillraceError("BREAKER_NOT_FOUND");
    return answer(breaker);
  }),
  serve(contract.openBreaker, async ({ params, body, identity }, { millrace }) => {
    ofAllTenants(identity);
    return answer(await millrace.breakers.open(params.name, body.reason, identity.actor));
  }),
  serve(contract.closeBreaker, async ({ params, body, identity }, { millrace }) => {
    ofAllTenants(identity);
    return answer(await millrace.breakers.close(params.name, body.reason, identity.actor));
  }),
  serve(contract.resetBreaker, async ({ params, body, identity }, { millrace }) => {
    ofAllTenants(identity);
    return answer(await millrace.breakers.reset(params.name, body.reason, identity.actor));
  }),
];
