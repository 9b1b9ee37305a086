// Standing offers: what a worker would take is in its lease's row; that it is there to take it is a lock of
// its listening connection, so that both end with it and neither costs a write.

import type { Offer } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { Database } from "./database.ts";
import { statement } from "./statement.ts";

const lock = (leaseId: string) => `hashtextextended(${leaseId}::text, 0)`;

/** Nobody else takes it but the listener, so a shared one that cannot be had means that it is there. */
const isHeard = (leaseId: string) => `not pg_try_advisory_xact_lock_shared(${lock(leaseId)})`;

/** A condition: the worker has this offer, has renewed in time, and hears. */
export const offerStands = (leaseId: string, offerId: string, leaseLeftMs: string) =>
  `case when exists (
      select from millrace.lease l where l.id = ${leaseId} and l.offer_id = ${offerId}
        and l.expires_at > now() + ${leaseLeftMs} * interval '1 ms'
    ) then ${isHeard(leaseId)} else false end`;

const stand = statement(
  "stand_offer",
  `select pg_try_advisory_lock(${lock("$1::uuid")}) as stands`,
);

const leave = statement("leave_offer", `select pg_advisory_unlock(${lock("$1::uuid")})`);

const describe = statement(
  "describe_offer",
  "update millrace.lease set offer_id = $2::uuid, offer = $3::json where id = $1::uuid",
);

const list = statement(
  "list_offers",
  `select l.id, l.offer_id, l.offer from millrace.lease l
  where l.offer_id is not null and l.expires_at > now() and ${isHeard("l.id")}`,
);

type Described = Omit<Offer, "leaseId" | "offerId">;

export async function describeOffer(connection: Connection, offer: Offer): Promise<void> {
  const { leaseId, offerId, ...described } = offer;
  await connection.query(describe, [leaseId, offerId, JSON.stringify(described)]);
}

export async function listOffers(database: Database): Promise<Offer[]> {
  type Row = { id: string; offer_id: string; offer: Described };
  const rows = await database.query<Row>(list);
  return rows.filter(isKnown).map(({ id, offer_id, offer }) => ({
    ...offer,
    ...{ leaseId: id, offerId: offer_id },
  }));
}

/** Workers of later versions may offer something else. */
const isKnown = ({ offer }: { offer: Described | null }): boolean =>
  typeof offer?.channel === "string" &&
  [offer.atOnce, offer.most].every(Number.isFinite) &&
  [offer.queueIds, offer.hints].every(Array.isArray);

export async function standOffer(connection: Connection, leaseId: string): Promise<boolean> {
  const rows = await connection.query<{ stands: boolean }>(stand, [leaseId]);
  return rows[0]?.stands === true;
}

export async function leaveOffer(connection: Connection, leaseId: string): Promise<void> {
  await connection.query(leave, [leaseId]);
}
