// The one error catalogue. Codes are stable: scripts and HTTP clients depend on them.

export const errorCodes = {
  PAYLOAD_INVALID: "The payload breaks a rule.",
  PAYLOAD_TOO_LARGE: "The payload is larger than the limit.",
  IDEMPOTENCY_CONFLICT: "The idempotency key belongs to a different request.",
  REFERENCE_TAKEN: "The reference is already used in this queue.",
  REFERENCES_NOT_UNIQUE: "What the queue holds does not let its references be unique.",
  QUEUE_FULL: "The queue is at its capacity.",
  TENANT_FULL: "The tenant is at its capacity.",
  RATE_LIMITED: "A rate limit is used up; try again later.",
  QUEUE_INACTIVE: "The queue does not accept jobs.",
  QUEUE_CLOSED: "The queue was shut down and takes nothing new.",
  QUEUE_NOT_FOUND: "There is no such queue.",
  JOB_NOT_FOUND: "There is no such job.",
  ILLEGAL_TRANSITION: "The job's state does not allow this.",
  STALE_TOKEN: "The token was superseded: somebody else holds the job, or it has ended.",
  LEASE_LOST: "The worker's lease is over.",
  NOT_LEADER: "The leader's term was superseded: another process is leader, or none is.",
  UNKNOWN_JOB_TYPE: "No handler is registered for this job type.",
  UNKNOWN_PRIORITY: "There is no such priority.",
  OPTION_INVALID: "An option has a value that is not allowed.",
  REASON_REQUIRED: "This action needs a reason.",
  RESULT_TOO_LARGE: "The handler's result is larger than the limit; store it and return a pointer.",
  RESULT_INVALID: "The handler's result cannot be stored as JSON.",
  JOB_FAILED: "The job ended without a result.",
  MAX_RUNTIME_EXCEEDED: "The handler ran longer than its maxRuntimeMs.",
  TIMEOUT: "The wait was longer than its limit.",
  KEY_BUSY: "Another open transaction holds this idempotency key or reference.",
  SCHEDULE_INVALID: "The cron expression or the time zone is not understood, or never comes.",
  TRIGGER_INVALID: "The trigger has fields that do not go together.",
  TRIGGER_NAME_TAKEN: "The tenant has another trigger of this name.",
  TRIGGER_NOT_FOUND: "There is no such trigger.",
  ITEM_NOT_HELD: "The item does not belong to this job, or has been settled.",
  BREAKER_OPEN: "The platform's breaker is open: the call was not made.",
  BREAKER_NOT_FOUND: "There is no such breaker.",
  STOPPED: "This Millrace instance has been stopped.",
  DATABASE_UNAVAILABLE: "PostgreSQL cannot be reached.",
  DATABASE_REFUSED: "PostgreSQL refused the login, the database or a right.",
  DATABASE_READ_ONLY: "PostgreSQL is read-only: it refuses to write.",
  DATABASE_UNSUPPORTED: "This PostgreSQL version is not supported.",
  EMBEDDED_UNAVAILABLE: "The embedded PostgreSQL cannot be started.",
  EMBEDDED_VERSION_CHANGED: "The data folder belongs to another major version of PostgreSQL.",
  REDIS_UNAVAILABLE: "Redis cannot be reached.",
  REDIS_REFUSED: "Redis refused a command.",
  REDIS_CLIENT_MISSING: "Redis is wanted, and the package @redis/client is not installed.",
  WEBHOOK_URL_REFUSED: "The webhook's URL is not allowed.",
  WEBHOOK_NOT_FOUND: "There is no such webhook.",
  WEBHOOK_SIGNATURE_INVALID: "The request does not come from Millrace, or is too old.",
  REQUEST_INVALID: "The request does not fit what this route accepts.",
  UNAUTHENTICATED: "There is no API key, or it is not valid.",
  IDENTITY_UNAVAILABLE: "The keys that tokens are checked with cannot be fetched.",
  FORBIDDEN: "The key's role does not allow this.",
  TENANT_FORBIDDEN: "The key belongs to another tenant.",
  CROSS_SITE_REFUSED: "A browser may do this from the service's own pages only.",
  ROUTE_NOT_FOUND: "There is no such route.",
  REQUEST_TIMEOUT: "The request did not arrive whole in time.",
  HEADERS_TOO_LARGE: "The request's headers are larger than the limit.",
  BODY_TOO_LARGE: "The request's body is larger than the limit.",
  MEDIA_TYPE_UNSUPPORTED: "The body must be application/json.",
  INTERNAL: "Something went wrong inside; the request's id is in the log.",
  API_KEY_NOT_FOUND: "There is no such API key.",
  ITEM_NOT_FOUND: "There is no such item.",
  DEAD_LETTER_NOT_FOUND: "There is no such dead letter.",
  QUEUE_EXISTS: "There is a queue of this name already.",
  COUNT_MISMATCH: "The count that was confirmed is not the count there is.",
  CONFIRMATION_MISMATCH: "What was confirmed is not what would be done.",
  TENANT_NOT_FOUND: "There is no such tenant.",
  CURSOR_INVALID: "The cursor does not come from this list.",
  SERVICE_UNAVAILABLE: "The HTTP service cannot be reached, or does not answer as it should.",
  TARGET_NOT_EMPTY: "The target of a copy is in use: only an empty schema is copied into.",
  SCHEMA_OUTDATED: "The schema is older than this version of Millrace; run the migrations.",
  SCHEMA_TOO_NEW: "The schema was made by a newer version of Millrace.",
  SCHEMA_TAKEN: "The schema holds tables that are not Millrace's.",
} as const;

export type ErrorCode = keyof typeof errorCodes;

export class MillraceError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: ErrorCode,
    message?: string,
    options: { cause?: unknown; details?: Record<string, unknown> } = {},
  ) {
    super(message ?? errorCodes[code], options.cause === undefined ? {} : { cause: options.cause });
    this.name = "MillraceError";
    this.code = code;
    this.details = Object.freeze({ ...options.details });
  }
}

/** This package's folder, as frames of a stack name it. */
const ownFolder = import.meta.url.replace(/^file:\/\/|domain\/errors\.[jt]s$/g, "");

/**
 * Node prints the stack of an error that nobody catches. At the edge, where the message says all there is to
 * say about our inside, only the caller's frames are worth reading.
 */
export function fromCaller<E>(error: E): E {
  if (!(error instanceof MillraceError)) return error;
  const lines = (error.stack ?? "").split("\n");
  const isFrame = (line: string) => /^\s+at /.test(line);
  const isInside = (line: string) => line.includes(ownFolder) || line.includes("node:internal");
  const callers = lines.filter((line) => isFrame(line) && !isInside(line));
  if (callers.length > 0)
    error.stack = [...lines.filter((line) => !isFrame(line)), ...callers].join("\n");
  return error;
}
