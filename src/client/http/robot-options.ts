// What a robot is told, checked when it is made.

import { checkFunction, checkOptions, type Known, knownNames } from "../../domain/check-options.ts";
import { MillraceError } from "../../domain/errors.ts";
import { checkName, checkNumber } from "../../worker/job-definition.ts";

export interface RobotItem {
  readonly id: string;
  readonly queueId: number;
  readonly reference: string | null;
  readonly priority: number;
  readonly payload: unknown;
  /** How many runs it has had before this one. */
  readonly retries: number;
}

export interface RobotRun {
  readonly item: RobotItem;
  /** Aborts when the lease is lost or somebody wants the item cancelled. */
  readonly signal: AbortSignal;
}

export interface RobotOptions {
  readonly queue: string;
  /** What it returns is the item's result; what it throws, an application exception. */
  readonly run: (run: RobotRun) => unknown;
  /** How many items at a time; 1 unless told. */
  readonly concurrency?: number;
  /** 1 to 3,600; 60 unless told. */
  readonly leaseSeconds?: number;
  /** How long a call waits for an item: 0 to 60, 20 unless told. */
  readonly waitSeconds?: number;
  readonly robotId?: string;
  /** Of the robot itself: a service that does not answer, an answer that it refused, a lost lease. */
  readonly onError?: (error: unknown) => void;
  /** Somebody else may have the item by now: what was done for it does not count. */
  readonly onLost?: (item: RobotItem, reason: unknown) => void;
}

/** Throw this where trying again is no use. */
export class BusinessException extends Error {
  override readonly name = "BusinessException";
}

type Optional = "robotId" | "onLost";
export type CheckedRobotOptions = Required<Omit<RobotOptions, Optional>> &
  Pick<RobotOptions, Optional>;

const known = knownNames({
  ...{ queue: true, run: true, concurrency: true, leaseSeconds: true, waitSeconds: true },
  ...{ robotId: true, onError: true, onLost: true },
} satisfies Known<RobotOptions>);

export function checkRobotOptions(options: RobotOptions): CheckedRobotOptions {
  checkOptions("a RobotWorker's options", options, known);
  checkName("queue", options.queue);
  if (typeof options.run !== "function")
    throw new MillraceError("OPTION_INVALID", "run must be a function.");
  checkNumber("concurrency", options.concurrency, 1, 1_000);
  checkSeconds("leaseSeconds", options.leaseSeconds, 1, 3_600);
  checkSeconds("waitSeconds", options.waitSeconds, 0, 60);
  if (options.robotId !== undefined) checkName("robotId", options.robotId);
  checkFunction("onError", options.onError);
  checkFunction("onLost", options.onLost);
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return {
    ...{ concurrency: 1, leaseSeconds: 60, waitSeconds: 20, onError: () => {} },
    ...(Object.fromEntries(given) as unknown as RobotOptions),
  } as CheckedRobotOptions;
}

function checkSeconds(what: string, value: number | undefined, least: number, most: number): void {
  const isFit = typeof value === "number" && value >= least && value <= most;
  if (value === undefined || isFit) return;
  const message = `${what} must be a number of seconds from ${least} to ${most}.`;
  throw new MillraceError("OPTION_INVALID", message);
}
