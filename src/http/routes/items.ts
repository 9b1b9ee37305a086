import type { ErrorClass } from "../../domain/error-class.ts";
import { MillraceError } from "../../domain/errors.ts";
import { isBusinessException } from "../../domain/exception-type.ts";
import { itemStatus } from "../../domain/job-state.ts";
import type { Token } from "../../domain/token.ts";
import type { Item, ItemEnd, LeasedItem } from "../../store/item.ts";
import type { Queue } from "../../store/store.ts";
import { defineJob } from "../../worker/job-definition.ts";
import * as contract from "../contract/items.ts";
import type { Route } from "../contract/route.ts";
import { type Identity, maySee, tenantToActOn, tenantToRead } from "../identity.ts";
import { asksOf } from "../same-request.ts";
import { type Call, type Served, type Service, serve } from "../served.ts";
import { itemView, leasedItemView, weightOfPriority } from "../views.ts";
import { parseToken, resultText } from "./item-words.ts";
import { laneOptions, oneKey } from "./job-requests.ts";

const defaultLeaseSeconds = 60;
const deletedWithoutNotes = "deleted over HTTP";

interface Place {
  readonly queue: Queue;
  readonly tenant: string;
}

async function placeById(
  id: number,
  tenantId: string | undefined,
  identity: Identity,
  { millrace }: Service,
): Promise<Place> {
  const named = tenantToRead(identity, tenantId);
  const queue = await millrace.queueCache.findById(id);
  // Another tenant's queue is not there for the tenant that is named either.
  if (queue === null || !(queue.tenant === "" || queue.tenant === (named ?? queue.tenant)))
    throw new MillraceError("QUEUE_NOT_FOUND");
  return { queue, tenant: queue.tenant || tenantToActOn(identity, tenantId) };
}

async function placeByName(
  name: string,
  tenantId: string | undefined,
  identity: Identity,
  { millrace }: Service,
): Promise<Place> {
  const tenant = tenantToActOn(identity, tenantId);
  const queue = await millrace.queueCache.find(tenant, name);
  if (queue === null) throw new MillraceError("QUEUE_NOT_FOUND");
  return { queue, tenant };
}

type NewItem = Omit<Call<typeof contract.addItem>["body"], "queue_id">;

/** The client compares the payload by itself; priority 0 is the same, said or not. */
const beyondTheItem = ({ payload: _, priority, ...more }: NewItem) => ({
  ...more,
  priority: priority === 0 ? undefined : priority,
});

async function add(
  { queue, tenant }: Place,
  body: NewItem,
  headerKey: string | undefined,
  { millrace, store, taker }: Service,
) {
  const { priorities } = millrace.config;
  const key = oneKey(headerKey, body.idempotency_key);
  const [enqueued] = await millrace.enqueueInto([
    {
      definition: defineJob({ type: "item", queue: queue.name, labels: body.labels ?? [] }),
      payload: body.payload,
      queue,
      weight: weightOfPriority(body.priority, priorities),
      asks: asksOf(beyondTheItem(body)),
      options: {
        tenant,
        ...(key === undefined ? {} : { key }),
        ...(body.reference === undefined ? {} : { reference: body.reference }),
        ...(body.correlation_id === undefined ? {} : { correlationId: body.correlation_id }),
        ...(body.delay_ms === undefined ? {} : { delayMs: body.delay_ms }),
        ...laneOptions(body),
      },
    },
  ]);
  taker.wake([queue.id]);
  const item = enqueued === undefined ? null : await store.service.items.find(enqueued.id);
  if (item === null) throw new MillraceError("ITEM_NOT_FOUND");
  const status = enqueued?.existing === true ? (200 as const) : (201 as const);
  return { status, body: itemView(item, priorities) };
}

async function next(
  wish: contract.NextWish,
  call: Pick<Call<never>, "identity" | "arrival" | "gone">,
  route: Route,
  service: Service,
) {
  const { queue_id, queue_name, count, wait_seconds = 0 } = wish;
  const { identity } = call;
  if ((queue_id === undefined) === (queue_name === undefined))
    throw new MillraceError("REQUEST_INVALID", "Name the queue: either queue_name or queue_id.");
  const { queue, tenant } =
    queue_name === undefined
      ? await placeById(queue_id ?? 0, wish.tenant_id, identity, service)
      : await placeByName(queue_name, wish.tenant_id, identity, service);
  const items = await service.taker.take(
    {
      queueId: queue.id,
      tenant,
      robot: wish.robot_id ?? identity.name,
      holder: identity.keyId,
      leaseMs: Math.round((wish.lease_seconds ?? defaultLeaseSeconds) * 1_000),
      count: count ?? 1,
      waitMs: Math.round(wait_seconds * 1_000),
      isAllowed: async () => {
        const now = (await service.caller.recognise(route, call.arrival)).identity;
        return now.tenant === identity.tenant && now.role === identity.role;
      },
    },
    call.gone(),
  );
  tellLeased(items, service);
  const { priorities } = service.millrace.config;
  const [first, ...others] = items.map((item) => leasedItemView(item, priorities));
  if (first === undefined) return { status: 204 as const };
  const body = count === undefined ? first : { items: [first, ...others] };
  return { status: 200 as const, body };
}

const about = ({ id, queueId, tenant, attempt, robot }: Item) => ({
  ...{ id, queueId, tenant, attempt, robot },
});

function tellLeased(items: readonly LeasedItem[], { millrace: { events } }: Service): void {
  if (!events.wants("robot.leased")) return;
  for (const item of items) {
    const waitedMs = Math.max(0, +(item.lockedAt ?? item.readyAt) - +item.readyAt);
    events.emit("robot.leased", { ...about(item), waitedMs });
  }
}

async function findItem(id: string, identity: Identity, { store }: Service): Promise<Item> {
  const item = await store.service.readsOf(identity.tenant).item(id);
  if (item === null || !maySee(identity, item.tenant)) throw new MillraceError("ITEM_NOT_FOUND");
  return item;
}

const read = serve(contract.readItem, async ({ params, identity }, service) => {
  const item = await findItem(params.id, identity, service);
  const isOutsider = identity.role !== "producer" && identity.role !== "robot";
  return {
    status: 200 as const,
    body: itemView(item, service.millrace.config.priorities, !isOutsider),
  };
});

const settle = serve(contract.settleItem, async ({ params, body, identity }, service) => {
  const token = parseToken(body.token);
  if (body.status !== "DONE" && body.status !== "FAILED")
    throw illegal(await findItem(params.id, identity, service));
  refuseContradiction(body);
  const hold = { id: params.id, token, holder: identity.keyId };
  const ended = await end(hold, body, service);
  const item = await findItem(params.id, identity, service);
  if (ended !== null) tellSettled(item, ended, service);
  else if (!(await isRepeat(hold, body.status, service))) throw refusal(item);
  return { status: 200 as const, body: itemView(item, service.millrace.config.priorities) };
});

interface Ended {
  readonly outcome: ItemEnd["outcome"];
  readonly class: ErrorClass | undefined;
  /** null: from when it was taken to when it was last changed. */
  readonly durationMs: number | null;
}

function tellSettled(item: Item, ended: Ended, { millrace: { events } }: Service): void {
  if (!events.wants("robot.settled")) return;
  const { lockedAt, updatedAt } = item;
  const durationMs = ended.durationMs ?? Math.max(0, +updatedAt - +(lockedAt ?? updatedAt));
  events.emit("robot.settled", { ...about(item), ...ended, durationMs });
}

type Hold = { readonly id: string; readonly token: Token; readonly holder: string };

async function end(
  hold: Hold,
  body: Call<typeof contract.settleItem>["body"],
  { store, millrace, process, random }: Service,
): Promise<Ended | null> {
  const { items } = store.service;
  const result = resultText(body.result, millrace.config.resultLimitBytes);
  if (body.status === "DONE")
    return (await items.complete(hold, result, process)) ? completed : null;
  const isBusiness = isBusinessException(body.exception_type, body.result, body.error_message);
  const failure = {
    message: body.error_message ?? "The robot gave no reason.",
    exceptionType: body.exception_type ?? null,
    isBusiness,
    result,
    random: random(),
  };
  const failed = await items.fail(hold, failure, process);
  if (failed === null || failed.outcome === "cancelled")
    return failed && { ...failed, class: undefined };
  return { ...failed, class: isBusiness ? "non_retryable" : "retryable" };
}

/** What went well has no reason for failing. */
function refuseContradiction(body: Call<typeof contract.settleItem>["body"]): void {
  if (body.status !== "DONE") return;
  for (const name of ["error_message", "exception_type"] as const)
    if (body[name] !== undefined)
      throw new MillraceError("REQUEST_INVALID", `body.${name}: not with DONE`);
}

const completed: Ended = { outcome: "completed", class: undefined, durationMs: null };

const endings: Record<string, readonly string[]> = {
  DONE: ["completed"],
  FAILED: ["retried", "dead", "cancelled"],
};

/** The answer to the first time was lost: saying the same again says ok. */
async function isRepeat({ id, token }: Hold, status: string, { store }: Service): Promise<boolean> {
  const outcome = (await store.settledOutcomes([{ id, token }])).get(id);
  return outcome !== undefined && (endings[status] ?? []).includes(outcome);
}

function refusal(item: Item): MillraceError {
  return itemStatus(item.state) === "IN_PROGRESS"
    ? new MillraceError("STALE_TOKEN")
    : illegal(item);
}

function illegal(item: Item): MillraceError {
  const status = itemStatus(item.state);
  const message = `The item is ${status}.`;
  return new MillraceError("ILLEGAL_TRANSITION", message, { details: { status } });
}

const renew = serve(contract.renewItem, async ({ params, body, identity }, service) => {
  const hold = { id: params.id, token: parseToken(body.token), holder: identity.keyId };
  const leaseMs = body.lease_seconds === undefined ? null : Math.round(body.lease_seconds * 1_000);
  const renewed = await service.store.service.items.renew(hold, leaseMs);
  if (renewed === null) throw refusal(await findItem(params.id, identity, service));
  return {
    status: 200 as const,
    body: {
      id: params.id,
      lock_expires_at: renewed.until.toISOString(),
      cancel_requested: renewed.cancelled,
    },
  };
});

const remove = serve(contract.deleteItem, async ({ params, query, identity }, service) => {
  const item = await findItem(params.id, identity, service);
  if (item.state === "deleted") throw new MillraceError("ITEM_NOT_FOUND");
  if (item.state === "running") throw illegal(item);
  await service.millrace.delete(item.id, query.notes ?? deletedWithoutNotes, identity.actor);
  return { status: 204 as const };
});

export const itemRoutes: readonly Served[] = [
  serve(contract.addItem, async ({ body, headers, identity }, service) => {
    const { queue_id, ...item } = body;
    const place = await placeById(queue_id, undefined, identity, service);
    return add(place, item, headers["idempotency-key"], service);
  }),
  serve(contract.addItemByName, async ({ body, headers, identity }, service) => {
    const { queue_name, tenant_id, ...item } = body;
    const place = await placeByName(queue_name, tenant_id, identity, service);
    return add(place, item, headers["idempotency-key"], service);
  }),
  serve(contract.nextItem, (call, service) => next(call.query, call, contract.nextItem, service)),
  serve(contract.takeNextItem, (call, service) =>
    next(call.body, call, contract.takeNextItem, service),
  ),
  read,
  settle,
  renew,
  remove,
];
