import { z } from "zod";
import * as field from "./fields.ts";
import { item, leasedItem, statuses } from "./item-shape.ts";
import { defineRoute, request, response } from "./route.ts";

const tag = "Items";

/** A weight goes from -100 to 100, and is 5 minus the priority. */
const priority = z
  .int()
  .min(-95)
  .max(105)
  .default(0)
  .describe("Larger is served first. 0 is normal, 5 is as urgent as the label high.");

const newItem = {
  reference: field.name.optional(),
  payload: z.unknown().optional().describe("Any JSON, a string, or nothing."),
  priority,
  idempotency_key: field.name.optional(),
  correlation_id: field.name.optional(),
  labels: field.labelPaths.optional(),
  ordering_key: field.orderingKey.optional(),
  limit_key: field.limitKey.optional(),
  delay_ms: z
    .int()
    .min(0)
    .max(100 * 365 * 86_400_000)
    .optional(),
};

const itemByQueueId = request("NewItem", z.strictObject({ queue_id: field.queueId, ...newItem }));
const itemByQueueName = request(
  "NewItemByName",
  z.strictObject({
    queue_name: field.name,
    tenant_id: field.tenantId.optional(),
    ...newItem,
  }),
);

const added = {
  201: { description: "Stored.", body: item },
  200: { description: "This very request was made before; the item as it is now.", body: item },
};
const addRefusals = [
  "PAYLOAD_INVALID",
  "PAYLOAD_TOO_LARGE",
  "QUEUE_NOT_FOUND",
  "QUEUE_INACTIVE",
  "QUEUE_FULL",
  "TENANT_FULL",
  "REFERENCE_TAKEN",
  "IDEMPOTENCY_CONFLICT",
  "KEY_BUSY",
] as const;
const addHeaders = z.object({ "idempotency-key": field.name.optional() });

const sameRequest =
  "With an idempotency key (in the body, or as the header Idempotency-Key) the same request again answers 200 with the same item, and a different one 409. The same is everything that is asked for, but for the correlation id.";

export const addItem = defineRoute({
  id: "addItem",
  tag,
  method: "POST",
  path: "/api/queue-items",
  summary: "Add an item, by the queue's id",
  description: sameRequest,
  access: ["producer", "robot", "manager"],
  headers: addHeaders,
  body: itemByQueueId,
  answers: added,
  refusals: addRefusals,
});

export const addItemByName = defineRoute({
  id: "addItemByName",
  tag,
  method: "POST",
  path: "/api/queue-items/add",
  summary: "Add an item, by the queue's name",
  description: sameRequest,
  access: ["producer", "robot", "manager"],
  headers: addHeaders,
  body: itemByQueueName,
  answers: added,
  refusals: ["TENANT_FORBIDDEN", ...addRefusals],
});

const [longestWait, shortestLease, longestLease, mostAtOnce] = [60, 1, 3_600, 100];
const told = {
  wait_seconds: "How long to wait for one; without it, not at all.",
  count: "Up to so many at once; the answer is then a list.",
  lease_seconds: "60 unless told.",
};
const wish = {
  queue_id: z.int().min(1).max(2_147_483_647),
  wait_seconds: z.number().min(0).max(longestWait).describe(told.wait_seconds),
  count: z.int().min(1).max(mostAtOnce).describe(told.count),
  lease_seconds: z.number().min(shortestLease).max(longestLease).describe(told.lease_seconds),
};
const whose = field.tenantId.describe(
  "Whose items; of a key without a tenant, `default` unless told. A key that belongs to a tenant may only name its own.",
);
const nextQuery = z.strictObject({
  queue_name: field.name.optional(),
  queue_id: field.queueId.optional(),
  tenant_id: whose.optional(),
  robot_id: field.name.optional().describe("Who leases it; the key's name unless told."),
  wait_seconds: z.coerce.number().min(0).max(longestWait).optional().describe(told.wait_seconds),
  count: z.coerce.number().int().min(1).max(mostAtOnce).optional().describe(told.count),
  lease_seconds: z.coerce
    .number()
    .min(shortestLease)
    .max(longestLease)
    .optional()
    .describe(told.lease_seconds),
});
const nextBody = request(
  "NextItem",
  z.strictObject({
    queue_name: field.name.optional(),
    queue_id: wish.queue_id.optional(),
    tenant_id: whose.optional(),
    robot_id: field.name.optional().describe("Who leases it; the key's name unless told."),
    wait_seconds: wish.wait_seconds.optional(),
    count: wish.count.optional(),
    lease_seconds: wish.lease_seconds.optional(),
  }),
);
export type NextWish = z.output<typeof nextBody>;

const leasedItems = response("LeasedItems", z.object({ items: z.array(leasedItem) }));
const served = {
  200: {
    description: "One item, or a list where a count was given.",
    body: z.union([leasedItem, leasedItems]),
  },
  204: { description: "There is nothing to do." },
};
const nextRefusals = ["QUEUE_NOT_FOUND", "TENANT_FORBIDDEN"] as const;

export const nextItem = defineRoute({
  id: "nextItem",
  tag,
  method: "GET",
  path: "/api/queue-items/next",
  summary: "Lease the next item: the highest priority, then the oldest",
  description: "It changes something although it is a GET, so it takes a key and no session.",
  access: ["robot", "manager"],
  bearerOnly: true,
  query: nextQuery,
  answers: served,
  refusals: nextRefusals,
});

export const takeNextItem = defineRoute({
  id: "takeNextItem",
  tag,
  method: "POST",
  path: "/api/queue-items/next",
  summary: "Lease the next item: the highest priority, then the oldest",
  access: ["robot", "manager"],
  body: nextBody,
  answers: served,
  refusals: nextRefusals,
});

const params = z.object({ id: field.id });
const token = z.string().min(1).max(100).describe("As `next` gave it.");

export const readItem = defineRoute({
  id: "readItem",
  tag,
  method: "GET",
  path: "/api/queue-items/{id}",
  summary: "One item",
  access: ["producer", "robot", "staff"],
  params,
  answers: { 200: { description: "The item.", body: item } },
  refusals: ["ITEM_NOT_FOUND"],
});

export const settleItem = defineRoute({
  id: "settleItem",
  tag,
  method: "PUT",
  path: "/api/queue-items/{id}",
  summary: "End an item that one holds",
  description:
    "A failed item is tried again as often as its queue's max_retries says, unless it was a business exception; then it becomes a dead letter. Saying the same again says ok. A failed item that somebody wants cancelled is cancelled (status DELETED). Statuses other than DONE and FAILED end nothing: 409.",
  access: ["robot", "manager"],
  params,
  body: request(
    "ItemEnd",
    z.strictObject({
      status: z.enum(statuses),
      token,
      result: z
        .unknown()
        .optional()
        .describe("Kept when the item has ended; that of a run that is tried again is not."),
      error_message: field
        .text(10_000)
        .optional()
        .describe("Its first 500 bytes are kept. Not with DONE."),
      exception_type: z
        .enum(["application", "business"])
        .optional()
        .describe(
          "Not with DONE. Without it a failure is a business exception if the word `business` is in error_message, or in failure_reason, reason, type or error_message of the result.",
        ),
    }),
  ),
  answers: { 200: { description: "The item as it is now.", body: item } },
  refusals: [
    "ITEM_NOT_FOUND",
    "ILLEGAL_TRANSITION",
    "STALE_TOKEN",
    "RESULT_TOO_LARGE",
    "RESULT_INVALID",
  ],
});

export const renewItem = defineRoute({
  id: "renewItem",
  tag,
  method: "POST",
  path: "/api/queue-items/{id}/renew",
  summary: "Hold an item for longer",
  description:
    "A lease never ends sooner than before. Without lease_seconds it is renewed for as long as it was taken for.",
  access: ["robot", "manager"],
  params,
  body: request(
    "ItemRenewal",
    z.strictObject({
      token,
      lease_seconds: z
        .number()
        .min(shortestLease)
        .max(longestLease)
        .optional()
        .describe("From now; as `next` was told unless told."),
    }),
  ),
  answers: {
    200: {
      description: "Until when.",
      body: response(
        "ItemRenewed",
        z.object({
          id: field.id,
          lock_expires_at: field.timeOut,
          cancel_requested: z.boolean().describe("Somebody wants it cancelled: give it up."),
        }),
      ),
    },
  },
  refusals: ["ITEM_NOT_FOUND", "STALE_TOKEN", "ILLEGAL_TRANSITION"],
});

export const deleteItem = defineRoute({
  id: "deleteItem",
  tag,
  method: "DELETE",
  path: "/api/queue-items/{id}",
  summary: "Delete an item that nobody holds; its reference is free again",
  access: ["manager"],
  params,
  query: z.strictObject({ notes: field.notes.optional() }),
  answers: { 204: { description: "Gone." } },
  refusals: ["ITEM_NOT_FOUND", "ILLEGAL_TRANSITION"],
});
