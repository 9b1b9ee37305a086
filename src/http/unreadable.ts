// What the HTTP parser refuses never becomes a request: it is answered on the socket itself, as a problem
// like any other.

import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { type ErrorCode, MillraceError } from "../domain/errors.ts";
import { toProblem } from "./problem.ts";

const codes: Readonly<Record<string, ErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "REQUEST_TIMEOUT",
  HPE_HEADER_OVERFLOW: "HEADERS_TOO_LARGE",
};

export const refuseUnreadable =
  (headers: Readonly<Record<string, string>>) =>
  (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code !== "ECONNRESET" && socket.writable)
      socket.write(answerTo(error.code ?? "", headers));
    socket.destroy(error);
  };

function answerTo(reason: string, headers: Readonly<Record<string, string>>): string {
  const refusal = new MillraceError(
    codes[reason] ?? "REQUEST_INVALID",
    codes[reason] === undefined ? "It is not HTTP." : undefined,
  );
  const problem = toProblem(refusal, randomUUID());
  const body = JSON.stringify(problem);
  const lines = {
    ...headers,
    "x-request-id": problem.instance,
    "content-type": "application/problem+json",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
  };
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}`);
  const first = `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`;
  return [first, ...head, "", body].join("\r\n");
}
