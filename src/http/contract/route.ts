// What a route is: the one source of validation, types, OpenAPI and documentation.

import { z } from "zod";
import type { ErrorCode } from "../../domain/errors.ts";
import type { Role } from "../../store/api-key.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

export interface Answer {
  readonly description: string;
  readonly body?: z.ZodType;
  /** Anything but JSON, in words for the documents. */
  readonly contentType?: string;
}

export interface Route {
  /** The name of the operation, in documents and in clients. */
  readonly id: string;
  readonly tag: string;
  readonly method: Method;
  readonly path: `/${string}`;
  readonly summary: string;
  readonly description?: string;
  /** Who may call it: these roles and those above them. */
  readonly access: readonly Role[] | "public";
  /** Takes a key in the header `Authorization` and nothing else: no session will do. */
  readonly bearerOnly?: true;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly headers?: z.ZodObject;
  readonly body?: z.ZodType;
  readonly answers: Readonly<Record<number, Answer>>;
  /** Beyond what every route may answer. */
  readonly refusals: readonly ErrorCode[];
}

export const defineRoute = <const R extends Route>(route: R): R => route;

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/** What a handler is given: every part parsed by its schema. */
export interface Input<R extends Route> {
  readonly params: Parsed<R["params"]>;
  readonly query: Parsed<R["query"]>;
  readonly headers: Parsed<R["headers"]>;
  readonly body: Parsed<R["body"]>;
}

type AnswerBody<A> = A extends { readonly body: infer S }
  ? S extends z.ZodType
    ? { readonly body: z.input<S> }
    : { readonly body?: undefined }
  : { readonly body?: unknown };

/** One of the answers that the route declares. */
export type Output<R extends Route> = {
  [Status in keyof R["answers"] & number]: {
    readonly status: Status;
    readonly headers?: Readonly<Record<string, string>>;
  } & AnswerBody<R["answers"][Status]>;
}[keyof R["answers"] & number];

/** Schemas with a name of their own in the documents. */
export const requests = z.registry<{ id: string }>();
export const responses = z.registry<{ id: string }>();

export const request = <S extends z.ZodType>(id: string, schema: S): S => {
  requests.add(schema, { id });
  return schema;
};

export const response = <S extends z.ZodType>(id: string, schema: S): S => {
  responses.add(schema, { id });
  return schema;
};
